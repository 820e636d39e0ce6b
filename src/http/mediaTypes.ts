import type { IncomingMessage } from 'node:http';
import { parse } from 'content-type';
import { badRequest } from '../operations/GraphQLRequest.js';

/** What an Accept header says, in the order given and with names in lower case; `excluded` are the types with `q=0`. */
export interface Accepted {
  readonly ranges: readonly MediaRange[];
  readonly excluded: readonly string[];
}

interface MediaRange {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string | undefined>>;
}

/** Characters of an Accept header that are read: more than any client sends. */
const maxLength = 2000;

const anything: Accepted = { ranges: [{ type: '*/*', parameters: {} }], excluded: [] };
const jsonOnly: Accepted = { ranges: [{ type: 'application/json', parameters: {} }], excluded: [] };

/** Reads an Accept header, in linear time because the caller is not authenticated yet. */
export function readAccept(accept: string | undefined): Accepted {
  if (accept === undefined || accept === '*/*') return anything;
  if (accept === 'application/json') return jsonOnly; // the usual ones need no parsing
  const ranges: MediaRange[] = [];
  const excluded: string[] = [];
  const text = accept.slice(0, maxLength);
  for (let start = 0; start < text.length; ) {
    const { type, parameters, index } = parse(text, { comma: true, start });
    if (/^0(\.0*)?$/.test(parameters['q'] ?? '')) excluded.push(type);
    else ranges.push({ type, parameters });
    start = index + 1;
  }
  return { ranges, excluded };
}

/** Whether a header names this very type, not a wildcard that includes it. */
export function accepts({ ranges }: Accepted, type: string): boolean {
  return ranges.some((range) => range.type === type);
}

/** Whether a Content-Type is JSON; its charset does not matter. */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && parse(contentType, { parameters: false }).type === 'application/json';
}

/** Whether a Content-Type leaves the body in UTF-8, which is also what JSON is in when it says nothing. */
export function isUtf8(contentType: string): boolean {
  const charset = parse(contentType).parameters['charset'];
  return charset === undefined || /^utf-?8$/i.test(charset);
}

/** How an answer is written, and which status a refused document gets (GraphQL over HTTP, section 6.4). */
export type MediaType = 'application/graphql-response+json' | 'application/json' | 'application/json, refusals as 200';

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
  throw badRequest('The Accept header must allow application/graphql-response+json or application/json', 406);
}

/** The forms in which `/graphql` answers. */
export type Form = 'answer' | 'events' | 'multipart' | 'callback';

/**
 * The form in which a request wants its answer. Multipart and callbacks are asked for by subscriptions only. An Accept
 * header that lists JSON besides events is sent with every request, so it asks for JSON.
 */
export function formOf({ method, headers: { accept } }: IncomingMessage): Form {
  const { ranges } = readAccept(accept);
  if (method === 'POST') {
    if (ranges.some(({ parameters }) => 'callbackspec' in parameters)) return 'callback';
    const isMultipart = ({ type, parameters }: MediaRange) =>
      type === 'multipart/mixed' && 'subscriptionspec' in parameters;
    if (ranges.some(isMultipart)) return 'multipart';
  }
  const isForEveryOccasion = ranges.some(({ type }) => type === '*/*' || type.includes('json'));
  return !isForEveryOccasion && ranges.some(({ type }) => type === 'text/event-stream') ? 'events' : 'answer';
}
