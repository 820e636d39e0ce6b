import { parse } from 'content-type';
import { type Answer, partialSuccess } from '../operations/answer.js';

/** The ways to answer with JSON. {@link contentTypeOf} and {@link operationStatusIn} say what each means. */
export type AnswerForm = 'application/graphql-response+json' | 'application/json' | 'application/json, refusals as 200';

const responseType = 'application/graphql-response+json';

/** The forms of a stream. When a client accepts several equally, the first one is used. */
const streamForms = ['multipart', 'events'] as const;
export type StreamForm = (typeof streamForms)[number];

/** What a client accepts. The operation decides between JSON and a stream: see {@link streamFor}. */
export interface Accepted {
  /** The form of a JSON answer; undefined when the client accepts no JSON. */
  readonly json: AnswerForm | undefined;
  /** The same for a router, which may drop the body of a non-2xx answer: refusals as 200 if it accepts both types equally. */
  readonly jsonForRouter: AnswerForm | undefined;
  /** The streams that the client names, preferred first. A client with a wildcard expects an answer that ends. */
  readonly streams: readonly StreamForm[];
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

/** The stream that a client prefers, if it names one. Multipart is only for POST. */
export function streamFor({ streams }: Accepted, method: string | undefined): StreamForm | undefined {
  return method === 'GET' ? streams.find((form) => form === 'events') : streams[0];
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
  const names = (type: string) => ranges.some((range) => range.type === type && range.quality > 0);
  const events = 'text/event-stream';
  const isOf: Record<StreamForm, (range: MediaRange) => boolean> = {
    multipart: ({ type, parameters }) => type === 'multipart/mixed' && 'subscriptionspec' in parameters,
    events: ({ type }) => type === events,
  };
  const quality = (form: StreamForm) => highest(ranges.filter(isOf[form]));
  const streams = streamForms.filter((form) => quality(form) > 0).sort((a, b) => quality(b) - quality(a));
  const json = jsonFor(ranges, names);
  const isOurChoice =
    names('application/json') && qualityOf(responseType, ranges) === qualityOf('application/json', ranges);
  const jsonForRouter = isOurChoice ? 'application/json, refusals as 200' : json;
  return { json, jsonForRouter, streams, takesEvents: qualityOf(events, ranges) > 0 };
}

/** Clients that name only `application/json` predate {@link responseType}, and expect 200 for a refused document. */
function jsonFor(ranges: readonly MediaRange[], names: (type: string) => boolean): AnswerForm | undefined {
  const [ofType, ofJson] = [qualityOf(responseType, ranges), qualityOf('application/json', ranges)];
  if (ofType === 0 && ofJson === 0) return undefined;
  if (ofType > ofJson || (ofType === ofJson && names(responseType))) return responseType;
  return names('application/json') && !names(responseType) ? 'application/json, refusals as 200' : 'application/json';
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

/** The Content-Type of an answer; `form` is undefined for the refusal of a client that accepts no JSON. */
export function contentTypeOf(form: AnswerForm | undefined): string {
  return `${form === responseType ? responseType : 'application/json'}; charset=utf-8`;
}

/** The status of an answer in a form. Only clients of {@link responseType} know {@link partialSuccess} and 422. */
export function statusIn(form: AnswerForm | undefined, { status, kind }: Answer): number {
  // Only PersistedQueryNotSupported is a refusal with status 200, because Apollo's older clients expect that.
  if (form === responseType) return kind !== 'result' && status === 200 ? 422 : status;
  return status === partialSuccess ? 200 : status === 422 ? 400 : status;
}

/** The status of the answer to an operation. Clients that want refusals as 200 mean those of operations, not of requests. */
export function operationStatusIn(form: AnswerForm | undefined, answer: Answer): number {
  const status = statusIn(form, answer);
  return answer.kind === 'mistake' && status === 400 && form === 'application/json, refusals as 200' ? 200 : status;
}

/** Whether a Content-Type is JSON; its charset does not matter. */
export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && parse(contentType, { parameters: false }).type === 'application/json';
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
