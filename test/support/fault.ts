import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import * as z from 'zod';
import { longestTimerMs } from '../../src/process/Runtime.js';
import {
  type Answer,
  answerOf,
  errorAnswer,
  jsonAnswer,
  sendAnswer,
  upstreamOnlyText,
  withHeaders,
} from '../../src/sandbox/Answer.js';
import type { ApiEndpoint, Received } from '../../src/sandbox/endpoints.js';
import { answerTo } from '../../src/sandbox/Sandbox.js';

export interface FaultyCall extends Received {
  readonly endpoint: ApiEndpoint;
  readonly response: ServerResponse;
  /** Keeps `send` until the gate is released; gives the function that forgets it. */
  readonly hold: (gate: string, send: () => void) => () => void;
}

/** What of its record the faults spoil: the member that tells most, a text, and the one that names the taxpayer. */
const members: Readonly<Record<ApiEndpoint, { telling: string; text: string; taxpayer?: string }>> = {
  createClientLink: { telling: 'url', text: 'url' },
  taxpayerToken: { telling: 'access_token', text: 'name', taxpayer: 'taxpayer_id' },
  refreshJob: { telling: 'status', text: 'name', taxpayer: 'taxpayerId' },
};

const count = z.int().nonnegative();
const ms = count.max(longestTimerMs);
const text = z.string();
const headers = z.record(text, text).optional();
/** Whether the call has been carried out (a link exists now) although its answer goes wrong. Default false. */
const afterEffect = z.boolean().optional();
/** Default: the member of the record that tells most. */
const field = text.optional();

/**
 * Each way for one answer to go wrong: what a rule gives for it, and the answer to send, or undefined when it was sent
 * another way. Where a kind does not say otherwise the call is carried out, and the answer is right but for what the kind
 * names.
 */
const table = {
  // Another answer altogether.
  'answer-with-status': fault({ status: count, headers, body: text.optional(), afterEffect }, (call, given) => {
    if (given.afterEffect) answerTo(call);
    if (given.body === undefined) return errorAnswer(given.status, 'Wanted by a fault', given.headers);
    return withHeaders(answerOf(given.status, 'application/json', given.body), given.headers ?? {});
  }),
  'refuse-authorization': fault({}, () => errorAnswer(401, 'Refused by a fault')),
  redirect: fault({ status: z.literal([301, 302, 303, 307, 308]), location: text }, (_, { status, location }) =>
    errorAnswer(status, 'Go elsewhere', { location }),
  ),
  'answer-with-html': fault({}, () =>
    answerOf(200, 'text/html', `<!doctype html><title>Sign in</title><p>${upstreamOnlyText}</p>`),
  ),
  'answer-with-text-that-is-not-json': spoilt({}, (answer) => withBody(answer, `{"text":"${upstreamOnlyText}`)),
  'answer-with-null': spoilt({}, (answer) => withBody(answer, 'null')),
  'answer-with-empty-body': spoilt({}, (answer) => withBody(answer, '')),

  // No answer, half an answer, a late answer.
  'never-answer': fault({ afterEffect }, (call, given) => {
    if (given.afterEffect) answerTo(call);
    return undefined;
  }),
  'answer-late': spoilt({ afterMs: ms }, (answer, { afterMs }, { response }) => sendLate(response, answer, afterMs)),
  /** The answer is decided on arrival and sent when `control.release(gate)` is called. */
  'hold-until-released': spoilt({ gate: text }, (answer, { gate }, { response, hold }) => {
    const forget = hold(gate, () => sendAnswer(response, answer));
    response.once('close', forget);
  }),
  /** Headers at once, then `bytes` (default 1) of the body every `everyMs`. */
  'drip-body': spoilt({ everyMs: ms, bytes: count.optional() }, (answer, { everyMs, bytes = 1 }, { response }) => {
    const { status, headers, body } = answer;
    response.writeHead(status, headers).flushHeaders();
    return sendChunks(response, async function* () {
      for (let sent = 0; sent < body.length; sent += bytes) {
        await delay(everyMs);
        yield body.subarray(sent, sent + bytes);
      }
    });
  }),
  'reset-before-effect': fault({}, ({ response }) => reset(response)),
  'reset-after-effect': spoilt({}, (_answer, _given, { response }) => reset(response)),
  /** Content-Length promises more than comes before the connection closes. */
  'truncate-body': spoilt({}, ({ status, headers, body }, _given, { response }) => {
    const half = body.subarray(0, Math.floor(body.length / 2));
    response.writeHead(status, headers).write(half, () => response.socket?.end());
  }),
  /** The right answer, then the connection closes although keep-alive was promised. */
  'close-after-answer': spoilt({}, (answer, _given, { response }) => {
    response.once('finish', () => response.socket?.end());
    return answer;
  }),

  // The right record, spoilt.
  /** `value` defaults to 42. */
  'give-wrong-type': spoilt({ field, value: z.unknown().optional() }, (answer, { field, value = 42 }, { endpoint }) =>
    withField(answer, field ?? members[endpoint].telling, value),
  ),
  'omit-field': spoilt({ field }, (answer, given, { endpoint }) =>
    withField(answer, given.field ?? members[endpoint].telling, undefined),
  ),
  /** The record of that taxpayer, or of any other, in place of the one asked for. */
  'answer-for-other-taxpayer': spoilt({ taxpayerId: text.optional() }, (answer, given, call) => {
    const { taxpayer } = members[call.endpoint];
    if (taxpayer === undefined || answer.status >= 300) return answer;
    const { taxpayerId } = call.route;
    const other =
      given.taxpayerId ?? [...call.service.state.taxpayers.keys()].find((id) => id !== taxpayerId) ?? 'nobody';
    if (call.endpoint === 'taxpayerToken') return answerTo({ ...call, route: { ...call.route, taxpayerId: other } });
    return withField(answer, taxpayer, other);
  }),
  'answer-for-other-job': spoilt({ jobId: text.optional() }, (answer, given) =>
    withField(answer, 'jobId', given.jobId ?? 'eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee'),
  ),
  'give-unknown-enum-value': spoilt({ field, value: text.optional() }, (answer, given) =>
    withField(answer, given.field ?? 'status', given.value ?? 'VALUE_FROM_THE_FUTURE'),
  ),
  /** Latin-1 writes ÿþ as the bytes FF FE, which no UTF-8 text contains. */
  'give-invalid-utf8': spoilt({ field }, (answer, given, { endpoint }) => {
    const { body } = withField(answer, given.field ?? members[endpoint].text, 'ÿþ');
    return withBody(answer, Buffer.from(body.toString(), 'latin1'));
  }),
  'answer-with-wrong-content-type': spoilt({ contentType: text.optional() }, (answer, { contentType = 'text/plain' }) =>
    withHeaders(answer, { 'content-type': contentType }),
  ),
  /** Default: 200 for 201, 201 for 200. */
  'answer-with-wrong-success-status': spoilt({ status: count.optional() }, (answer, given) => {
    return { ...answer, status: given.status ?? (answer.status === 201 ? 200 : 201) };
  }),

  // Answers that cost the reader dear.
  /** `bytes` in all, by leading white space, which JSON allows; without Content-Length when `chunked`. */
  'answer-with-huge-body': spoilt({ bytes: count, chunked: z.boolean().optional() }, (answer, given, { response }) => {
    const padding = Math.max(0, given.bytes - answer.body.length);
    const length = given.chunked ? {} : { 'content-length': padding + answer.body.length };
    response.writeHead(answer.status, { 'content-type': 'application/json', ...length });
    const spaces = Buffer.alloc(Math.min(65_536, padding), ' ');
    return sendChunks(response, function* () {
      for (let left = padding; left > 0; left -= spaces.length) yield spaces.subarray(0, left);
      yield answer.body;
    });
  }),
  /** Nested `levels` deep: the metadata of an otherwise right record, or the whole body. */
  'nest-deeply': spoilt({ levels: count, where: z.enum(['metadata', 'body']).optional() }, (answer, given) => {
    // Nested by hand: JSON.stringify would overflow the stack long before JSON.parse does.
    const nested = `${'{"deeper":'.repeat(given.levels)}null${'}'.repeat(given.levels)}`;
    if (given.where === 'body') return withBody(answer, nested);
    const { metadata: _, ...record } = recordIn(answer);
    return withBody(answer, `${JSON.stringify(record).slice(0, -1)},"metadata":${nested}}`);
  }),
  /** A few kilobytes of gzip that expand to `bytes` of valid JSON: members may follow one another, so one is repeated. */
  'answer-with-gzip-bomb': spoilt({ bytes: count }, ({ status, body }, { bytes }, { response }) => {
    const mebibyte = 1_048_576;
    const member = gzipSync(Buffer.alloc(mebibyte, ' '));
    response.writeHead(status, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    return sendChunks(response, function* () {
      for (let expanded = 0; expanded < bytes; expanded += mebibyte) yield member;
      yield gzipSync(body);
    });
  }),
  'answer-with-broken-gzip': spoilt({}, (answer) =>
    withHeaders(withBody(answer, 'no gzip'), { 'content-encoding': 'gzip' }),
  ),
};

type ShapeOf<Row> = Row extends { readonly shape: infer Shape extends z.ZodRawShape } ? Shape : never;
export type Fault = {
  [Kind in keyof typeof table]: z.output<z.ZodObject<{ kind: z.ZodLiteral<Kind> } & ShapeOf<(typeof table)[Kind]>>>;
}[keyof typeof table];
export const faultKinds = Object.keys(table) as Fault['kind'][];

const options = faultKinds.map((kind) => z.strictObject({ kind: z.literal(kind), ...table[kind].shape }));
export const faultSchema = z.discriminatedUnion('kind', options as never) as unknown as z.ZodType<Fault>;

/** Answers the call the wrong way that the fault describes. */
export function answerWithFault(given: Fault, call: FaultyCall): void {
  const { happen } = table[given.kind] as { happen: (call: FaultyCall, given: Fault) => Answer | undefined };
  const answer = happen(call, given);
  if (answer) sendAnswer(call.response, answer);
}

function fault<Shape extends z.ZodRawShape>(
  shape: Shape,
  happen: (call: FaultyCall, given: z.output<z.ZodObject<Shape>>) => Answer | undefined,
) {
  return { shape, happen };
}

/** A fault of a call that is carried out. */
function spoilt<Shape extends z.ZodRawShape>(
  shape: Shape,
  happen: (answer: Answer, given: z.output<z.ZodObject<Shape>>, call: FaultyCall) => Answer | undefined,
) {
  return fault(shape, (call, given) => happen(answerTo(call), given, call));
}

/** Sends the answer after a delay in milliseconds, unless the client has left. */
export function sendLate(response: ServerResponse, answer: Answer, delayMs: number): undefined {
  if (delayMs === 0) return void sendAnswer(response, answer);
  const timer = setTimeout(sendAnswer, delayMs, response, answer);
  response.once('close', () => clearTimeout(timer));
}

function reset(response: ServerResponse): undefined {
  response.socket?.resetAndDestroy();
}

function withBody(answer: Answer, body: Buffer | string): Answer {
  return answerOf(answer.status, 'application/json', body);
}

/** Sets a member of the record, or leaves it out. Error answers stay unchanged: they hold no record. */
function withField(answer: Answer, field: string, value: unknown): Answer {
  if (answer.status >= 300) return answer;
  return jsonAnswer(answer.status, { ...recordIn(answer), [field]: value });
}

function recordIn(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.body.toString()) as Record<string, unknown>;
}

/** A client that leaves half-way is what these faults are for. */
function sendChunks(response: ServerResponse, chunks: () => Iterable<Buffer> | AsyncIterable<Buffer>): undefined {
  pipeline(Readable.from(chunks()), response).catch(() => response.destroy());
}
