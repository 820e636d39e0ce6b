import { parse } from 'content-type';
import { type Answer, partialSuccess } from '../operations/answer.js';

/** A way to answer with JSON. */
export interface Dialect {
  readonly contentType: string;
  readonly statusOf: (answer: Pick<Answer, 'kind' | 'status'>) => number;
}

const responseType = 'application/graphql-response+json';
const jsonType = 'application/json';

/** Only its clients know {@link partialSuccess} and 422. */
const responseJson: Dialect = {
  contentType: `${responseType}; charset=utf-8`,
  // Only PersistedQueryNotSupported is a refusal with status 200, because Apollo's older clients expect that.
  statusOf: ({ kind, status }) => (kind !== 'result' && status === 200 ? 422 : status),
};
/** Also for the refusal of a client that accepts no JSON. */
export const plainJson: Dialect = {
  contentType: `${jsonType}; charset=utf-8`,
  statusOf: ({ status }) => (status === partialSuccess ? 200 : status === 422 ? 400 : status),
};
/** For clients that name only `application/json`: they predate {@link responseType} and expect 200 for a refused document. */
const oldJson: Dialect = {
  contentType: plainJson.contentType,
  statusOf: (answer) => {
    const status = plainJson.statusOf(answer);
    return answer.kind === 'mistake' && status === 400 ? 200 : status;
  },
};

/** The ways to answer with a stream. When a client accepts several equally, the first one is used. */
const streamTransports = ['multipart', 'sse'] as const;
export type StreamTransport = (typeof streamTransports)[number];

/** What a client accepts. The operation decides between JSON and a stream. */
export interface Accepted {
  /** Undefined when the client accepts no JSON. */
  readonly json: Dialect | undefined;
  /** The streams that the client names, preferred first. A client with a wildcard expects an answer that ends. */
  readonly streams: readonly StreamTransport[];
  /** Whether the client accepts event streams, by name or by a wildcard. */
  readonly takesEvents: boolean;
}

/** How many characters of an Accept header are read: more than any client sends. */
const maxLength = 2000;
/** Limits of the header cache: entries, and characters of one. A client sends the same header with every request. */
const maxRemembered = 100;
const maxRememberedLength = 300;
const remembered = new Map<string, Accepted>();

/** Reads an Accept header (RFC 9110, 12.5.1), in linear time because the caller is not authenticated yet. */
export function readAccept(accept = '*/*'): Accepted {
  const known = remembered.get(accept);
  if (known !== undefined) return known;
  const accepted = acceptedBy(rangesOf(accept.slice(0, maxLength)));
  if (accept.length <= maxRememberedLength) {
    if (remembered.size >= maxRemembered) remembered.clear();
    remembered.set(accept, accepted);
  }
  return accepted;
}

/** One member of an Accept header, with its names in lower case; `quality` is from 0 to 1. */
interface MediaRange {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly quality: number;
}

function rangesOf(text: string): readonly MediaRange[] {
  const ranges: MediaRange[] = [];
  for (let start = 0; start < text.length; ) {
    const { type, parameters, index } = parse(text, { comma: true, start });
    const { q = '', charset } = parameters;
    const quality = /^[01](\.\d*)?$/.test(q) ? Math.min(Number(q), 1) : 1;
    if (isUtf8(charset)) ranges.push({ type, parameters, quality }); // we write UTF-8 only
    start = index + 1;
  }
  return ranges;
}

function acceptedBy(ranges: readonly MediaRange[]): Accepted {
  const events = ranges.filter(({ type }) => type === 'text/event-stream');
  const parts = ranges.filter(({ type, parameters }) => type === 'multipart/mixed' && 'subscriptionspec' in parameters);
  const quality = { sse: highest(events), multipart: highest(parts) };
  const streams = streamTransports.filter((each) => quality[each] > 0).sort((a, b) => quality[b] - quality[a]);
  return { json: dialectFor(ranges), streams, takesEvents: qualityOf('text/event-stream', ranges) > 0 };
}

function dialectFor(ranges: readonly MediaRange[]): Dialect | undefined {
  const names = (type: string) => ranges.some((range) => range.type === type && range.quality > 0);
  const [ofResponse, ofJson] = [qualityOf(responseType, ranges), qualityOf(jsonType, ranges)];
  if (ofResponse === 0 && ofJson === 0) return undefined;
  if (ofResponse > ofJson || (ofResponse === ofJson && names(responseType))) return responseJson;
  return names(jsonType) && !names(responseType) ? oldJson : plainJson;
}

/** The quality that the most specific matching range gives `type`; 0 when none matches. */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  const [main] = type.split('/');
  for (const range of [type, `${main}/*`, '*/*']) {
    const matching = ranges.filter((each) => each.type === range);
    if (matching.length > 0) return highest(matching);
  }
  return 0;
}

function highest(ranges: readonly MediaRange[]): number {
  return Math.max(0, ...ranges.map(({ quality }) => quality));
}

/** Whether a Content-Type is JSON; its charset does not matter. */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && parse(contentType, { parameters: false }).type === jsonType;
}

/** Whether a Content-Type says UTF-8, or names no charset: JSON is UTF-8 by default. False if the charset cannot be read. */
export function isBodyInUtf8(contentType: string): boolean {
  const mentions = contentType.match(/charset/gi)?.length ?? 0;
  const { charset } = parse(contentType).parameters;
  return mentions === 0 || (mentions === 1 && charset !== undefined && isUtf8(charset));
}

function isUtf8(charset: string | undefined): boolean {
  return charset === undefined || /^utf-?8$/i.test(charset);
}
