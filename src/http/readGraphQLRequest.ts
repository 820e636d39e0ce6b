import type { IncomingMessage } from 'node:http';
import type { Holder, Release } from '../admission/Places.js';
import { badRequest, type GraphQLRequest, headBytes, requestOf } from '../operations/GraphQLRequest.js';
import { isObject, utf8 } from '../process/json.js';
import { isJson, readAccept } from './accept.js';
import type { Edge } from './edge.js';

/**
 * Reads a request (GraphQL over HTTP, Request) on behalf of `holder`. When the holder's turn comes, parses it and does its `work`
 * at once: see {@link Quota.turnOf}. Also rejects with what `work` throws.
 * @throws GatewayError BAD_USER_INPUT, or RATE_LIMITED when there is no room for the body
 */
export async function readGraphQLRequest<Result>(
  request: IncomingMessage,
  holder: Holder,
  edge: Edge,
  work: (asked: GraphQLRequest) => Result | Promise<Result>,
): Promise<Result> {
  if (request.destroyed) throw endedTooEarly(); // its events are over, so reading would not end
  const { method, url = '' } = request;
  if (method === 'GET') refuseForgery(request, edge);
  else refuseUnreadable(request);
  const given = method === 'GET' ? url : await readBody(request, holder, edge);
  const turn = edge.quota.turnOf(holder);
  if (turn !== undefined) {
    await turn.finally(edge.places.take('bytes', holder, headBytes(request) + given.length));
    if (request.socket.destroyed) throw endedTooEarly(); // nobody waits for the answer
  }
  const asked = edge.quota.timed(holder, () =>
    typeof given === 'string' ? requestOf('GET', parametersOfQuery(given), given.length) : requestOfBody(given, edge),
  );
  return work(asked);
}

/** @throws GatewayError for another method than GET and POST, and for a body in another form than JSON */
function refuseUnreadable({ method, headers }: IncomingMessage): void {
  if (method !== 'POST') throw badRequest('The method must be GET or POST', 405);
  if (!isJson(headers['content-type'])) throw badRequest('The Content-Type must be application/json', 415);
  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding.toLowerCase() !== 'identity') throw badRequest('The body must not be compressed', 415);
}

/**
 * CSRF prevention as in Apollo Server: without a preflight, a page of another origin can GET, but not add these headers. An
 * EventSource cannot add them either, so the page of a client that accepts only a stream is checked instead.
 * @throws GatewayError
 */
function refuseForgery(request: IncomingMessage, { origins }: Edge): void {
  const { headers } = request;
  if (headers['apollo-require-preflight'] || headers['x-apollo-operation-name']) return;
  if (isJson(headers['content-type'])) return;
  const { json, stream } = readAccept(headers.accept);
  if (json !== undefined || stream === undefined) {
    throw badRequest(
      'GET requests must send the header apollo-require-preflight (any value), as protection against cross-site requests',
      400,
    );
  }
  origins.refuseForeignGet(request);
}

const noBytes = Buffer.of();

const endedTooEarly = () => badRequest('The client left too early', 400);

/**
 * Reads a body. Rejects with a GatewayError when it is too long, ends too early, or the caller has no room for one that is not
 * complete with its first piece.
 * Uses events: an async iterator would cost as much as the rest of a small request.
 */
function readBody(request: IncomingMessage, holder: Holder, { places, config }: Edge): Promise<Buffer> {
  const maxBytes = config.MAX_BODY_BYTES;
  const tooLarge = () => badRequest(`The body must have at most ${maxBytes} bytes (MAX_BODY_BYTES)`, 413);
  return new Promise((resolve, reject) => {
    const expected = Number(request.headers['content-length'] ?? maxBytes);
    if (expected > maxBytes) throw tooLarge();
    let body: Buffer = noBytes;
    let size = 0;
    let release: Release | undefined;
    // Removes the listeners, which would keep the body in memory until the request is answered.
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
      const start = size;
      size += chunk.length;
      try {
        if (size > maxBytes) throw tooLarge();
        if (size < expected) release ??= places.take('bytes', holder, expected);
      } catch (error) {
        return refuse(error);
      }
      if (start === 0) body = chunk;
      else {
        // Copied into one buffer, which grows, because many small ones would take several times their bytes.
        if (body.length < size) body = Buffer.concat([body], Math.min(expected, 2 * size));
        chunk.copy(body, start);
      }
    };
    const end = () => {
      settle();
      resolve(body.subarray(0, size));
    };
    const fail = () => refuse(endedTooEarly());
    request.on('data', take).on('end', end).on('error', fail);
  });
}

function requestOfBody(bytes: Buffer, { operations }: Edge): GraphQLRequest {
  const mistake = 'The body must be valid JSON in UTF-8';
  const body = attempt(mistake, () => utf8.decode(bytes));
  const request = operations.requests.get(body);
  if (request !== undefined) return request;
  const json = attempt(mistake, () => JSON.parse(body));
  if (!isObject(json)) throw badRequest('The body must be a JSON object with one operation: there are no batches');
  return { ...requestOf('POST', json, body.length), body };
}

function parametersOfQuery(url: string): Record<string, unknown> {
  const { search, searchParams } = new URL(url, 'http://gateway');
  // `URLSearchParams` would silently replace malformed input.
  attempt('The query string must be percent-encoded UTF-8', () => decodeURIComponent(search));
  const parameters: Record<string, unknown> = {};
  for (const name of ['query', 'documentId', 'operationName', 'variables', 'extensions']) {
    const [given, ...more] = searchParams.getAll(name);
    if (more.length > 0) throw badRequest(`${name} must be given once`);
    if (!given) continue; // an empty parameter counts as absent
    const holdsJson = name === 'variables' || name === 'extensions';
    parameters[name] = holdsJson ? attempt(`${name} must be JSON`, () => JSON.parse(given)) : given;
  }
  return parameters;
}

/** Returns the result of `read`. An exception is the client's mistake: BAD_USER_INPUT with the message `otherwise`. */
function attempt<Value>(otherwise: string, read: () => Value): Value {
  try {
    return read();
  } catch {
    throw badRequest(otherwise, 400);
  }
}
