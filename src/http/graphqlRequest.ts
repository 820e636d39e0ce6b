import { isAscii } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Holder, Ledger, Release } from '../admission/Ledger.js';
import { withoutStack } from '../errors/errors.js';
import { parseJson } from '../json.js';
import { badRequest, type GraphQLRequest, isObject, requestOf } from '../operations/GraphQLRequest.js';
import type { Pipeline } from '../operations/Pipeline.js';
import { isBodyInUtf8, isJson } from './mediaTypes.js';

export interface ReadOptions {
  /** Counts a body that comes in pieces. */
  readonly ledger: Ledger;
  readonly pipeline: Pipeline;
  /** Accepts a GET without a header that would cause a preflight; its origin was checked. */
  readonly simpleGet?: boolean;
}

/** Reading a body of more bytes takes time worth noting. */
const largeBody = 16_384;

/** Reads a request (GraphQL over HTTP, Request) on behalf of `holder`. @throws GatewayError BAD_USER_INPUT */
export async function readGraphQLRequest(
  request: IncomingMessage,
  holder: Holder,
  options: ReadOptions,
): Promise<GraphQLRequest> {
  const { metadataDepth } = options.pipeline.limits;
  if (request.method === 'GET') {
    if (!options.simpleGet) refuseSimpleRequest(request);
    const { url = '' } = request;
    return { ...requestOf('GET', parametersOfQuery(url), metadataDepth), size: url.length };
  }
  if (request.method !== 'POST') throw badRequest('The method must be GET or POST', 405, { allow: 'GET, POST' });
  const contentType = request.headers['content-type'];
  if (contentType !== 'application/json') refuseOtherContentType(contentType); // the usual one needs no parsing
  const encoding = request.headers['content-encoding']?.toLowerCase();
  if (encoding !== undefined && encoding !== 'identity') throw badRequest('The body must not be compressed', 415);
  const bytes = await readBody(request, holder, options);
  const beganAt = bytes.length < largeBody ? undefined : performance.now();
  try {
    return requestOfBody(bytes, options);
  } finally {
    if (beganAt !== undefined) options.pipeline.noteWork(holder, beganAt);
  }
}

function refuseOtherContentType(contentType = ''): void {
  if (!isJson(contentType)) throw badRequest('The Content-Type must be application/json', 415);
  if (!isBodyInUtf8(contentType)) throw badRequest('The charset of the Content-Type must be utf-8', 415);
}

/** A page of another origin can send a GET without a preflight, but no own headers. As Apollo Server's CSRF prevention. */
function refuseSimpleRequest({ headers }: IncomingMessage): void {
  if (headers['apollo-require-preflight'] || headers['x-apollo-operation-name']) return;
  if (isJson(headers['content-type'])) return;
  throw badRequest('A GET needs the header apollo-require-preflight: it may come from a page of another origin', 400);
}

/**
 * By events: an async iterator would cost as much as the rest of a small request. Node.js tells nobody of a client that left
 * before there were listeners, and a destroyed request emits nothing more: it is refused at once.
 */
function readBody(request: IncomingMessage, holder: Holder, { ledger, pipeline }: ReadOptions): Promise<Buffer> {
  const maxBytes = pipeline.limits.bodyBytes;
  const tooLarge = () => badRequest(`The body must have at most ${maxBytes} bytes (MAX_BODY_BYTES)`, 413);
  const endedTooEarly = () => badRequest('The body ended too early', 400);
  return new Promise((resolve, reject) => {
    if (request.destroyed) throw endedTooEarly(); // rejects
    const expected = Number(request.headers['content-length'] ?? maxBytes);
    if (expected > maxBytes) throw tooLarge();
    const chunks: Buffer[] = [];
    let size = 0;
    let release: Release | undefined;
    // What was read is not held until the request is answered.
    const settle = () => {
      request.off('data', take).off('end', end).off('error', fail);
      release?.();
    };
    const refuse = (error: unknown) => {
      request.pause();
      settle();
      reject(error);
    };
    const take = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) refuse(tooLarge());
      if (size >= expected || release !== undefined) return;
      try {
        release = ledger.take('bytes', holder, expected);
      } catch (error) {
        refuse(error);
      }
    };
    const end = () => {
      settle();
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    };
    const fail = () => refuse(endedTooEarly());
    request.on('data', take).on('end', end).on('error', fail);
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function requestOfBody(bytes: Buffer, { pipeline }: ReadOptions): GraphQLRequest {
  const mistake = 'The body must be JSON in UTF-8';
  const body = isAscii(bytes) ? bytes.toString('latin1') : attempt(mistake, () => utf8.decode(bytes));
  const request = pipeline.memory.requests.get(body);
  if (request !== undefined) return request;
  const json = attempt(mistake, () => parseJson(body));
  if (Array.isArray(json)) throw badRequest('Batches of operations are not served: send one operation per request');
  if (!isObject(json)) throw badRequest('The body must be a JSON object with a query');
  return { ...requestOf('POST', json, pipeline.limits.metadataDepth), body, size: body.length };
}

function parametersOfQuery(url: string): Record<string, unknown> {
  const start = url.indexOf('?');
  const text = start === -1 ? '' : url.slice(start + 1);
  // `URLSearchParams` would replace what is malformed without a word.
  attempt('The query string must be percent-encoded UTF-8', () => decodeURIComponent(text));
  const search = new URLSearchParams(text);
  const parameters: Record<string, unknown> = {};
  for (const name of ['query', 'documentId', 'operationName', 'variables', 'extensions']) {
    const [given, ...more] = search.getAll(name);
    if (more.length > 0) throw badRequest(`${name} must be given once`);
    const isJson = name === 'variables' || name === 'extensions';
    // An empty parameter is one that is not given.
    parameters[name] = isJson && given ? attempt(`${name} must be JSON`, () => parseJson(given)) : given || undefined;
  }
  return parameters;
}

/** What `read` returns; what it throws is the caller's mistake. */
function attempt<Value>(otherwise: string, read: () => Value): Value {
  try {
    return withoutStack(read);
  } catch {
    throw badRequest(otherwise, 400);
  }
}
