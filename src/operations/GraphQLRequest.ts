import type { IncomingMessage } from 'node:http';
import { badInput, GatewayError } from '../errors/errors.js';
import { isNestedWithin, isObject, maxMetadataDepth } from '../process/json.js';
import { ownText } from '../process/memory.js';

export type Variables = Readonly<Record<string, unknown>>;

/** The parameters of one operation, checked for shape. */
export interface GraphQLRequest {
  readonly method: 'GET' | 'POST';
  readonly query: string | undefined;
  /** The id of a persisted document, in place of its text. */
  readonly documentId: string | undefined;
  readonly operationName: string | undefined;
  readonly variables: Variables;
  readonly extensions: Readonly<Record<string, unknown>>;
  /** The HTTP body that the request was parsed from; undefined for a GET, on a socket, and when it came from the cache. */
  readonly body?: string | undefined;
  /**
   * Characters that the request was parsed from; 0 when it came from the cache, which holds one object for all equal
   * requests.
   */
  readonly size: number;
}

/** Bytes of memory per character of a parsed request. */
export const bytesPerCharacter = 16;
/** Bytes of memory per character of a request's headers, and what each name or value takes besides. */
const bytesPerHeaderCharacter = 3;
const bytesPerHeaderText = 60;

/** About how many bytes of memory the URL and the headers of a request take. */
export function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = bytesPerHeaderCharacter * url.length;
  for (const text of rawHeaders) bytes += bytesPerHeaderText + bytesPerHeaderCharacter * text.length;
  return bytes;
}

export const noValues: Variables = Object.freeze({});

/** Levels of a request around its metadata: the body, variables, a variable, input, and some to spare. */
const levelsAroundMetadata = 10;
const maxDepth = maxMetadataDepth + levelsAroundMetadata;

/** Checks the shape of what a caller sent. Nesting comes first: values are then walked recursively. @throws GatewayError */
export function requestOf(
  method: 'GET' | 'POST',
  parameters: Readonly<Record<string, unknown>>,
  size: number,
): GraphQLRequest {
  for (const name of ['variables', 'extensions']) {
    const value = parameters[name];
    if (!isNestedWithin(value, maxDepth)) {
      const parts = `metadata ${maxMetadataDepth}, and ${levelsAroundMetadata} around it`;
      throw badInput(name, `must be nested at most ${maxDepth} levels (${parts})`);
    }
    if (value != null && !isObject(value)) throw badRequest(`${name} must be an object`);
  }
  for (const name of ['documentId', 'query', 'operationName']) {
    if (typeof (parameters[name] ?? '') !== 'string') throw badRequest(`${name} must be a string`);
  }
  const { query, documentId, operationName, variables, extensions } = parameters as Partial<GraphQLRequest>;
  return {
    method,
    query: query || undefined, // over a WebSocket, an id comes with an empty query
    documentId: documentId ?? undefined,
    operationName: operationName || undefined,
    variables: variables ?? noValues,
    extensions: extensions ?? noValues,
    size,
  };
}

/** A refusal. With `httpStatus`: the request itself is wrong. Without: the request was read, but cannot be executed. */
export function badRequest(message: string, httpStatus?: number): GatewayError {
  return new GatewayError('BAD_USER_INPUT', message, { httpStatus });
}

/** The program that sent a request, as it calls itself. */
export interface Client {
  readonly client: string | undefined;
  readonly clientVersion: string | undefined;
}

/** Longest name or version that is kept, in characters. */
const longestName = 64;

/**
 * Name and version from the headers of Apollo's clients or those of the GraphQL Foundation, or the same names in the
 * parameters of a socket; cut to 64 plain characters.
 */
export function clientOf(headers: Readonly<Record<string, unknown>>): Client {
  return {
    client: plain(headers['apollographql-client-name'] ?? headers['graphql-client-name']),
    clientVersion: plain(headers['apollographql-client-version'] ?? headers['graphql-client-version']),
  };
}

function plain(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const start = ownText(text.slice(0, 4 * longestName));
  return start.replace(/[^\w .:/@+-]+/g, '').slice(0, longestName) || undefined;
}
