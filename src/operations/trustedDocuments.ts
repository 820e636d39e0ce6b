import { readFileSync } from 'node:fs';
import { stripIgnoredCharacters } from 'graphql';
import { z } from 'zod';
import { GatewayError } from '../errors/errors.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';

const manifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: z.string().min(1), body: z.string().min(1) })),
});

/** Apollo's clients send this for persisted documents and automatic persisted queries alike; only listed ids are known here. */
const byHash = z.object({ persistedQuery: z.object({ sha256Hash: z.string() }) });

/** The documents that may run when TRUSTED_DOCUMENTS_FILE is set. */
export class TrustedDocuments {
  readonly #byId = new Map<string, string>();
  readonly #byText = new Map<string, string>();

  constructor(operations: readonly { readonly id: string; readonly body: string }[]) {
    for (const { id, body } of operations) {
      this.#byId.set(id, body);
      this.#byText.set(stripIgnoredCharacters(body), body);
    }
  }

  /**
   * The listed document that a request names by id (`documentId`, or `persistedQuery.sha256Hash` as Apollo's clients send
   * it), by its text in any layout, or by both if they agree. @throws GatewayError BAD_USER_INPUT (400)
   */
  resolve({ query, documentId, extensions }: GraphQLRequest): string {
    const id = documentId ?? byHash.safeParse(extensions).data?.persistedQuery.sha256Hash;
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (query === undefined) {
      if (byId !== undefined) return byId;
      throw refusal(id === undefined ? 'The request names no document' : 'This id is not a trusted document');
    }
    const byText = this.#byText.get(normalised(query));
    if (byText !== undefined && (id === undefined || byId === byText)) return byText;
    throw refusal('This is not a trusted document');
  }
}

/**
 * The request with the document to run: a trusted one, where there is a list. A router that presents its secret writes its
 * own documents. @throws GatewayError BAD_USER_INPUT or GRAPHQL_VALIDATION_FAILED (422)
 */
export function withDocument(
  request: GraphQLRequest,
  fromRouter: boolean | undefined,
  documents: TrustedDocuments | undefined,
): GraphQLRequest {
  if (request.query) refuseManyLines(request.query);
  if (documents === undefined || fromRouter === true) {
    // An automatic persisted query has an answer of its own, which tells Apollo's clients to send the text.
    if (!request.query && !request.extensions?.['persistedQuery']) throw badRequest('The request must have a query');
    return request;
  }
  return { ...request, query: documents.resolve(request), extensions: undefined };
}

/** Lines of a document: graphql-js counts them anew for each place it names. */
const maxLines = 10_000;

function refuseManyLines(query: string): void {
  if (query.length < maxLines || query.split(/\r\n|[\n\r]/, maxLines + 1).length <= maxLines) return;
  throw new GatewayError('GRAPHQL_VALIDATION_FAILED', `The document must have at most ${maxLines} lines`, {
    httpStatus: 422,
  });
}

/** Reads a manifest in Apollo's persisted-query format. @throws Error in one line that names TRUSTED_DOCUMENTS_FILE */
export function readTrustedDocuments(file: string): TrustedDocuments {
  const fail = (problem: string) => new Error(`TRUSTED_DOCUMENTS_FILE ${problem}`);
  const format = "a manifest in Apollo's persisted-query format";
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw fail(`${code === undefined ? 'is not JSON' : `cannot be read (${code})`}: expected ${format}`);
  }
  const parsed = manifest.safeParse(json);
  if (!parsed.success) throw fail(`is not ${format}: see ${parsed.error.issues[0]?.path.join('.') || 'the whole'}`);
  const { operations } = parsed.data;
  if (new Set(operations.map(({ id }) => id)).size < operations.length) throw fail('holds an id twice');
  try {
    return new TrustedDocuments(operations);
  } catch {
    throw fail('holds a document that is not GraphQL');
  }
}

/** Without what has no meaning in GraphQL; a text that is not GraphQL matches nothing. */
function normalised(text: string): string {
  try {
    return stripIgnoredCharacters(text);
  } catch {
    return '';
  }
}

function refusal(what: string): GatewayError {
  return badRequest(`${what}: only those of TRUSTED_DOCUMENTS_FILE may run here`);
}
