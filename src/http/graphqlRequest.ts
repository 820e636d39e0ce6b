import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Admission } from '../admission/Admission.js';
import type { Holder, Ledger, Release } from '../admission/Ledger.js';
import { GatewayError } from '../errors/errors.js';
import { isNestedWithin, parseJson } from '../json.js';
import type { Recurring } from '../operations/documents/Recurring.js';
import { accepts, isJson, isUtf8, readAccept } from './mediaTypes.js';

/** One GraphQL operation as it came over HTTP, checked for shape. */
export interface GraphQLRequest {
  readonly method: 'GET' | 'POST';
  readonly query: string | undefined;
  /** A persisted document, in place of its text. */
  readonly documentId: string | undefined;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
  /** What it was read from, when it was not known. */
  readonly body?: string | undefined;
}

export interface RequestLimits {
  /** MAX_BODY_BYTES */
  readonly maxBytes: number;
  /** MAX_METADATA_DEPTH */
  readonly maxMetadataDepth: number;
}

export interface ReadOptions {
  /** A GET needs no header that browsers would ask for first; the caller has seen to its origin. */
  readonly simpleGet?: boolean;
  /** Requests by their body, which are not read again. */
  readonly known?: Recurring<GraphQLRequest>;
  /** Where a body that does not come in one piece is counted while it comes, and for whom. */
  readonly account?: {
    readonly ledger: Ledger;
    readonly holder: Holder;
    /** Where the time is noted that reading a large body takes. */
    readonly rateLimit?: Admission;
  };
}

/** Bytes from which on reading a body takes a time worth noting. */
const largeBody = 16_384;

/** Levels of a request around its metadata: the body, variables, a variable, input, and some to spare. */
const levelsAroundMetadata = 10;

/** How an answer is written, and which status a refused document gets (GraphQL over HTTP, section 6.4). */
export type MediaType = 'application/graphql-response+json' | 'application/json' | 'application/json, refusals as 200';

/**
 * Reads the GraphQL parameters of a request (GraphQL over HTTP, section 5).
 *
 * @throws GatewayError BAD_USER_INPUT with the HTTP status that fits
 */
export async function readGraphQLRequest(
  request: IncomingMessage,
  limits: RequestLimits,
  options: ReadOptions = {},
): Promise<GraphQLRequest> {
  if (request.method === 'GET') {
    if (!options.simpleGet) refuseSimpleRequest(request);
    return parametersOfQuery(request.url ?? '', limits);
  }
  if (request.method !== 'POST') {
    const options = { httpStatus: 405, allow: 'GET, POST' };
    throw new GatewayError('BAD_USER_INPUT', 'The method must be GET or POST', options);
  }
  const contentType = request.headers['content-type'];
  if (contentType !== 'application/json') refuseOtherContentType(contentType); // the usual one needs no parsing
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') throw refusal('The body must not be compressed', 415);
  const bytes = await readBody(request, limits.maxBytes, options.account);
  if (bytes.length < largeBody) return parametersOfBody(bytes, limits, options.known);
  const beganAt = performance.now();
  try {
    return parametersOfBody(bytes, limits, options.known);
  } finally {
    options.account?.rateLimit?.noteWork(options.account.holder, beganAt);
  }
}

/** The media type of the answer (GraphQL over HTTP, section 4). @throws GatewayError with status 406 when none fits */
export function mediaTypeFor(accept: string | undefined): MediaType {
  if (accept === undefined || accept === '*/*') return 'application/json';
  if (accept === 'application/json') return 'application/json, refusals as 200'; // the usual ones need no parsing
  const accepted = readAccept(accept);
  if (accepts(accepted, 'application/graphql-response+json')) return 'application/graphql-response+json';
  if (accepts(accepted, 'application/json')) return 'application/json, refusals as 200';
  const takesAny = accepts(accepted, '*/*') || accepts(accepted, 'application/*');
  const written = ['application/json', 'application/graphql-response+json'] as const;
  const type = takesAny ? written.find((each) => !accepted.excluded.includes(each)) : undefined;
  if (type !== undefined) return type;
  throw refusal('The Accept header must allow application/graphql-response+json or application/json', 406);
}

function refuseOtherContentType(contentType: string | undefined): void {
  if (contentType === undefined || !isJson(contentType))
    throw refusal('The Content-Type must be application/json', 415);
  if (!isUtf8(contentType)) throw refusal('The charset of the Content-Type must be utf-8', 415);
}

/**
 * A page of another origin can make a browser send a GET without asking first; it cannot add headers to it. Same rule and
 * header names as Apollo Server's CSRF prevention.
 */
function refuseSimpleRequest({ headers }: IncomingMessage): void {
  if (headers['apollo-require-preflight'] || headers['x-apollo-operation-name']) return;
  if (isJson(headers['content-type'])) return;
  throw refusal('A GET needs the header apollo-require-preflight: it may come from a page of another origin', 400);
}

/** By events: an async iterator over the stream costs as much as the whole rest of a small request. */
function readBody(request: IncomingMessage, maxBytes: number, account: ReadOptions['account']): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const expected = Number(request.headers['content-length'] ?? maxBytes);
    if (expected > maxBytes) {
      reject(tooLarge(maxBytes));
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    let release: Release | undefined;
    const refuse = (error: unknown) => {
      request.pause().removeAllListeners('data');
      release?.();
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) refuse(tooLarge(maxBytes));
      if (size >= expected || account === undefined || release !== undefined) return;
      try {
        release = account.ledger.take('bytes', account.holder, expected);
      } catch (error) {
        refuse(error);
      }
    });
    request.on('end', () => {
      release?.();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    });
    request.on('error', () => refuse(refusal('The body ended too early', 400)));
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parametersOfBody(
  bytes: Buffer,
  limits: RequestLimits,
  known: Recurring<GraphQLRequest> | undefined,
): GraphQLRequest {
  let body: string;
  let json: unknown;
  try {
    body = isAscii(bytes) ? bytes.toString('latin1') : utf8.decode(bytes);
    const request = known?.get(body);
    if (request !== undefined) return request;
    json = parseJson(body);
  } catch {
    throw refusal('The body must be JSON in UTF-8', 400);
  }
  if (Array.isArray(json)) throw refusal('Batches of operations are not served: send one operation per request', 400);
  if (!isObject(json)) throw refusal('The body must be a JSON object with a query', 400);
  const request = checked('POST', json, limits);
  return known === undefined ? request : { ...request, body };
}

function parametersOfQuery(url: string, limits: RequestLimits): GraphQLRequest {
  const start = url.indexOf('?');
  const text = start === -1 ? '' : url.slice(start + 1);
  if (!isDecodable(text)) throw refusal('The query string must be percent-encoded UTF-8', 400);
  const search = new URLSearchParams(text);
  const names = ['query', 'documentId', 'operationName', 'variables', 'extensions'];
  const repeated = names.find((name) => search.getAll(name).length > 1);
  if (repeated !== undefined) throw refusal(`${repeated} must be given once`, 400);
  const parameters = {
    query: search.get('query'),
    documentId: search.get('documentId'),
    operationName: search.get('operationName'),
    variables: jsonParameter(search, 'variables'),
    extensions: jsonParameter(search, 'extensions'),
  };
  return checked('GET', parameters, limits);
}

/** `URLSearchParams` would replace what is malformed without a word. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function jsonParameter(search: URLSearchParams, name: string): unknown {
  const text = search.get(name);
  if (text === null) return undefined;
  try {
    return parseJson(text);
  } catch {
    throw refusal(`${name} must be JSON`, 400);
  }
}

/**
 * Refuses nesting that what comes after would overflow the stack on, because it walks values by recursion.
 *
 * @throws GatewayError BAD_USER_INPUT
 */
export function refuseDeepNesting(
  { variables, extensions }: { readonly variables?: unknown; readonly extensions?: unknown },
  { maxMetadataDepth }: RequestLimits,
): void {
  const maxDepth = maxMetadataDepth + levelsAroundMetadata;
  const path = isNestedWithin(variables, maxDepth)
    ? isNestedWithin(extensions, maxDepth)
      ? undefined
      : 'extensions'
    : 'variables';
  if (path === undefined) return;
  const message = `must be nested at most ${maxDepth} levels (MAX_METADATA_DEPTH ${maxMetadataDepth} and ${levelsAroundMetadata} around it)`;
  throw new GatewayError('BAD_USER_INPUT', `${path} ${message}`, { violations: [{ path, message }], httpStatus: 400 });
}

function checked(
  method: 'GET' | 'POST',
  parameters: Readonly<Record<string, unknown>>,
  limits: RequestLimits,
): GraphQLRequest {
  const { query, documentId, operationName, variables, extensions } = parameters;
  refuseDeepNesting(parameters, limits);
  if (documentId != null && typeof documentId !== 'string') throw refusal('documentId must be a string', 400);
  if (query != null && typeof query !== 'string') throw refusal('query must be a string', 400);
  if (operationName != null && typeof operationName !== 'string') throw refusal('operationName must be a string', 400);
  if (variables != null && !isObject(variables)) throw refusal('variables must be an object', 400);
  if (extensions != null && !isObject(extensions)) throw refusal('extensions must be an object', 400);
  return {
    method,
    query: query ?? undefined,
    documentId: documentId ?? undefined,
    operationName: operationName || undefined,
    variables: variables ?? undefined,
    extensions: extensions ?? undefined,
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function tooLarge(maxBytes: number): GatewayError {
  return refusal(`The body must have at most ${maxBytes} bytes (MAX_BODY_BYTES)`, 413);
}

function refusal(message: string, httpStatus: number): GatewayError {
  return new GatewayError('BAD_USER_INPUT', message, { httpStatus });
}
