import { hash } from 'node:crypto';
import { Lexer, Source, stripIgnoredCharacters, TokenKind } from 'graphql';
import * as z from 'zod';
import { follow } from '../config/files.js';
import { GatewayError } from '../errors/errors.js';
import type { Client } from './clientName.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import { ListedDocuments, readListedDocuments } from './ListedDocuments.js';
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
  #listed = new ListedDocuments();
  #unwatch = () => {};

  constructor(private readonly options: TrustedDocumentsOptions) {}

  /** @throws Error in one line that names TRUSTED_DOCUMENTS_FILE */
  async start(): Promise<void> {
    const { paths } = this.options;
    this.#listed = await readListedDocuments(paths);
    this.#unwatch = follow(paths, () => this.#readAgain());
  }

  stop(): void {
    this.#unwatch();
  }

  async #readAgain(): Promise<void> {
    const { paths, log } = this.options;
    try {
      this.#listed = await readListedDocuments(paths);
      log.info({ documents: this.#listed.size }, 'the trusted documents were read again');
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
    const document = this.#listed.find(id, query);
    if (document !== undefined) return document;
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
