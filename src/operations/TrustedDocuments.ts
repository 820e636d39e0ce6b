import { hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Lexer, Source, stripIgnoredCharacters, TokenKind } from 'graphql';
import * as z from 'zod';
import { follow } from '../config/files.js';
import { GatewayError } from '../errors/errors.js';
import { withoutByteOrderMark } from '../json.js';
import type { Client } from './clientName.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import type { OperationFacts } from './OperationContext.js';

/** An operation whose document is not listed: it runs only because the mode is `report`. */
export interface UntrustedDocument extends Client {
  /** SHA-256 of its text {@link withoutValues}, in hexadecimal, as Apollo's clients name it. */
  readonly hash: string;
  /** See {@link operationLabel}. */
  readonly operation: string;
  readonly requestId: string;
}

export interface TrustedDocumentsOptions {
  /** Files and folders. */
  readonly paths: readonly string[];
  /** `report`: documents that are not listed may run, and are reported. */
  readonly mode: 'enforce' | 'report';
  readonly log: {
    readonly info: (fields: object, message: string) => void;
    readonly warn: (fields: object, message: string) => void;
  };
  readonly onUntrusted: (untrusted: UntrustedDocument) => void;
}

/** Apollo's clients send this for persisted documents and automatic persisted queries alike; only listed ids are known here. */
const byHash = z.object({ persistedQuery: z.object({ sha256Hash: z.string() }) });

/** The documents of TRUSTED_DOCUMENTS_FILE, read again when they change. */
export class TrustedDocuments {
  #listed = new Listed();
  #unwatch = () => {};

  constructor(private readonly options: TrustedDocumentsOptions) {}

  /** @throws Error in one line that names TRUSTED_DOCUMENTS_FILE */
  async start(): Promise<void> {
    const { paths } = this.options;
    this.#listed = await readListed(paths);
    this.#unwatch = follow(paths, () => this.#readAgain());
  }

  stop(): void {
    this.#unwatch();
  }

  async #readAgain(): Promise<void> {
    const { paths, log } = this.options;
    try {
      this.#listed = await readListed(paths);
      log.info({ documents: this.#listed.byId.size }, 'the trusted documents were read again');
    } catch (error) {
      log.warn({ problem: (error as Error).message }, 'the new trusted documents cannot be used: those in use stay');
    }
  }

  /**
   * The listed document that a request names by id (`documentId`, or `persistedQuery.sha256Hash` as Apollo's clients send
   * it), by its text in any layout, or by both if they agree. Undefined when the request goes on as it is.
   * @throws GatewayError BAD_USER_INPUT (400)
   */
  resolve({ query, documentId, extensions }: GraphQLRequest): string | undefined {
    const id = documentId ?? byHash.safeParse(extensions).data?.persistedQuery.sha256Hash;
    const byId = id === undefined ? undefined : this.#listed.byId.get(id);
    const document = query === undefined ? byId : this.#listed.withText(query);
    if (document !== undefined && (id === undefined || byId === document)) return document;
    if (query === undefined && id === undefined) throw refusal('The request has neither a document nor the id of one');
    if (this.options.mode === 'enforce' || (query === undefined && documentId !== undefined)) {
      throw refusal(query === undefined ? 'This id is not a trusted document' : 'This is not a trusted document');
    }
    return undefined;
  }

  /** Reports a document that runs although it is not listed. */
  report(query: string, operation: string, { requestId, client }: OperationFacts): void {
    this.options.onUntrusted({ hash: hash('sha256', withoutValues(query)), operation, ...client, requestId });
  }
}

/**
 * The request with the document to run: the listed one, or the request's own where any document may run.
 * @throws GatewayError BAD_USER_INPUT or GRAPHQL_VALIDATION_FAILED (422)
 */
export function withDocument(request: GraphQLRequest, documents: TrustedDocuments | undefined): GraphQLRequest {
  if (request.query) refuseManyLines(request.query);
  const trusted = documents?.resolve(request);
  if (trusted !== undefined) return { ...request, query: trusted, extensions: undefined };
  // An automatic persisted query has an answer of its own, which tells Apollo's clients to send the text.
  if (!request.query && !request.extensions?.['persistedQuery']) throw badRequest('The request must have a query');
  return request;
}

const emptied: Readonly<Record<string, string>> = {
  [TokenKind.STRING]: '""',
  [TokenKind.BLOCK_STRING]: '""',
  [TokenKind.INT]: '0',
  [TokenKind.FLOAT]: '0',
};

/**
 * A valid document as it is, unless it holds strings, numbers or comments: then without comments and layout, each string as
 * `""` and each number as `0`. A hash does not hide short values such as an SSN: anybody can try them all.
 */
function withoutValues(query: string): string {
  let holdsValues = query.includes('#');
  const tokens: string[] = [];
  const lexer = new Lexer(new Source(query));
  while (lexer.advance().kind !== TokenKind.EOF) {
    const { kind, value } = lexer.token;
    holdsValues ||= kind in emptied;
    tokens.push(emptied[kind] ?? value ?? kind);
  }
  return holdsValues ? stripIgnoredCharacters(tokens.join(' ')) : query;
}

/** Most lines of a document: graphql-js counts them again for each location that it reports. */
const maxLines = 10_000;

function refuseManyLines(query: string): void {
  if (query.length < maxLines || query.split(/\r\n|[\n\r]/, maxLines + 1).length <= maxLines) return;
  throw new GatewayError('GRAPHQL_VALIDATION_FAILED', `The document must have at most ${maxLines} lines`, {
    httpStatus: 422,
  });
}

function refusal(what: string): GatewayError {
  return badRequest(`${what}: only those of TRUSTED_DOCUMENTS_FILE may run here`);
}

/** Documents by id, and by their original and their normalised text. */
class Listed {
  readonly byId = new Map<string, string>();
  readonly #byText = new Map<string, string>();
  /** A longer text cannot be a listed one in another layout: to normalise one of MAX_BODY_BYTES takes 150 ms. */
  #longestLayout = 10_000;

  /** @throws Error that says what is wrong with the document */
  add(id: string, body: string): void {
    const normal = normalised(body);
    if (normal === undefined) throw new Error('holds a document that is not GraphQL');
    const text = this.#byText.get(normal) ?? body;
    if ((this.byId.get(id) ?? text) !== text) throw new Error('gives one id to two documents');
    this.byId.set(id, text);
    this.#byText.set(normal, text).set(body, text);
    this.#longestLayout = Math.max(this.#longestLayout, 10 * body.length);
  }

  withText(query: string): string | undefined {
    const known = this.#byText.get(query);
    if (known !== undefined || query.length > this.#longestLayout) return known;
    const normal = normalised(query);
    return normal === undefined ? undefined : this.#byText.get(normal);
  }
}

/** The text without ignored characters, such as white space and comments; undefined if it is not GraphQL. */
function normalised(text: string): string | undefined {
  try {
    return stripIgnoredCharacters(text);
  } catch {
    return undefined;
  }
}

const filled = z.string().min(1);

/** The format of Apollo's tools. A `clientName` is not read: a client chooses its name, so it would prove nothing. */
const apolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: filled, body: filled })),
});

/** The format of GraphQL Code Generator and Relay. */
const textsByHash = z.record(filled, filled);

/**
 * Reads the files, and the .json files of the folders, in `paths`: each an Apollo manifest or a map from hash to text.
 * @throws Error in one line that names TRUSTED_DOCUMENTS_FILE and the file
 */
export async function readListed(paths: readonly string[]): Promise<Listed> {
  const listed = new Listed();
  for (const path of paths) {
    for (const file of await filesOf(path).catch(failing(path))) await addFile(listed, file).catch(failing(file));
  }
  return listed;
}

/** A folder's .json files, without the hidden ones: Kubernetes keeps the files that it links to among those. */
async function filesOf(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = await readdir(path);
  const lists = names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  if (lists.length === 0) throw new Error('is a folder without a .json file');
  return lists.sort().map((name) => join(path, name));
}

async function addFile(listed: Listed, file: string): Promise<void> {
  const documents = documentsIn(await readFile(file, 'utf8'));
  for (const [id, body] of documents) {
    try {
      listed.add(id, body);
    } catch (error) {
      throw new Error(`${(error as Error).message}, see ${JSON.stringify(id.slice(0, 100))}`);
    }
  }
}

function documentsIn(text: string): readonly (readonly [id: string, body: string])[] {
  let json: unknown;
  try {
    json = JSON.parse(withoutByteOrderMark(text));
  } catch {
    throw new Error('is not JSON');
  }
  const isManifest = typeof json === 'object' && json !== null && ('format' in json || 'operations' in json);
  const { error, data } = isManifest ? apolloManifest.safeParse(json) : textsByHash.safeParse(json);
  if (data === undefined) {
    const place = error?.issues[0]?.path.join('.').slice(0, 100) || 'the whole';
    throw new Error(`is neither Apollo's persisted-query manifest nor { hash: text }, see ${place}`);
  }
  return 'operations' in data && Array.isArray(data.operations)
    ? data.operations.map(({ id, body }) => [id, body])
    : Object.entries(data as Record<string, string>);
}

/** What cannot be done with a file: our own words, or those for an error of the file system. */
function failing(path: string) {
  return ({ code, message }: NodeJS.ErrnoException): never => {
    throw new Error(`TRUSTED_DOCUMENTS_FILE ${code ? `cannot be read (${code})` : message}: ${path}`);
  };
}
