import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';
import { partialSuccess, type StatusOf } from '../operations/Operation.js';

/** A way to answer with JSON. */
export interface Dialect {
  readonly contentType: string;
  readonly statusOf: StatusOf;
}

const responseType = 'application/graphql-response+json';
const jsonType = 'application/json';

/** For clients that name {@link responseType}: only they know {@link partialSuccess} and 422. */
const responseJson: Dialect = {
  contentType: `${responseType}; charset=utf-8`,
  // The only refusal with status 200 is PersistedQueryNotSupported, for Apollo's older clients.
  statusOf: ({ kind, status }) => (kind !== 'result' && status === 200 ? 422 : status),
};
/** Also for the refusal of a client that accepts no JSON. */
export const plainJson: Dialect = {
  contentType: `${jsonType}; charset=utf-8`,
  statusOf: ({ status }) => {
    if (status === partialSuccess) return 200;
    return status === 422 ? 400 : status;
  },
};
/** For clients that name only `application/json`: older than {@link responseType}, they expect 200 for a refused document. */
const oldJson: Dialect = {
  contentType: plainJson.contentType,
  statusOf: (answer) => {
    const status = plainJson.statusOf(answer);
    return answer.kind === 'mistake' && status === 400 ? 200 : status;
  },
};

export type StreamTransport = 'multipart' | 'sse';

const eventsType = 'text/event-stream;charset=utf-8';
const multipartType = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0';
const streamTypes: Readonly<Record<string, StreamTransport>> = { [multipartType]: 'multipart', [eventsType]: 'sse' };

/** What a client accepts. The operation decides between JSON and a stream. */
export interface Accepted {
  /** Undefined when the client accepts no JSON. */
  readonly json: Dialect | undefined;
  /** The stream that the client prefers of those it names; a client that sends only a wildcard expects an answer that ends. */
  readonly stream: StreamTransport | undefined;
}

/** How many characters of an Accept header are read: more than any client sends. */
const maxLength = 500;
/** A client sends the same header with every request. */
const remembered = new LRUCache<string, Accepted>({ max: 100, memoMethod: acceptedBy });

/** Reads an Accept header (RFC 9110, 12.5.1). An empty one names nothing, as if it were absent. */
export function readAccept(accept = ''): Accepted {
  return remembered.memo(accept.slice(0, maxLength) || '*/*');
}

function acceptedBy(accept: string): Accepted {
  const negotiator = new Negotiator({ headers: { accept } });
  const names = (type: string) => accept.toLowerCase().includes(type);
  const stream = negotiator
    .mediaTypes(Object.keys(streamTypes))
    .find((type) => names(type === eventsType ? 'text/event-stream' : 'subscriptionspec'));
  return { json: dialectFor(negotiator, names), stream: streamTypes[stream ?? ''] };
}

function dialectFor(negotiator: Negotiator, names: (type: string) => boolean): Dialect | undefined {
  const [first, second] = negotiator.mediaTypes([responseJson.contentType, plainJson.contentType]);
  if (first === undefined) return undefined;
  const namesNewer = names(responseType);
  // By a wildcard alone, a client does not say that it knows the newer type.
  if (first === responseJson.contentType && (namesNewer || second === undefined)) return responseJson;
  return names(jsonType) && !namesNewer ? oldJson : plainJson;
}

/** Whether a Content-Type is JSON. Its charset does not matter: a body that is not UTF-8 is no JSON. */
export function isJson(contentType = ''): boolean {
  return contentType === jsonType || contentType.split(';', 1)[0]?.trim().toLowerCase() === jsonType;
}
