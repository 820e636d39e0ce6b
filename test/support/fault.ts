import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, errorAnswer, sendAnswer } from '../../src/sandbox/answers.js';
import { answerTo, type Received } from '../../src/sandbox/endpoints.js';

/**
 * Stands in the body and a header of every error of the sandbox of the tests. If a caller of the gateway sees it, upstream text has
 * leaked.
 */
export const upstreamOnlyText = 'SANDBOX-UPSTREAM-INTERNAL-TEXT';

/** An answer of the sandbox; an error has the text that must reach no caller. */
export function marked(answer: Answer): Answer {
  if (answer.status < 400) return answer;
  const { body, headers } = withBody(
    answer,
    JSON.stringify({ ...JSON.parse(`${answer.body}`), detail: upstreamOnlyText }),
  );
  return { ...answer, body, headers: { ...headers, 'x-sandbox-detail': upstreamOnlyText } };
}

/** How one answer goes wrong. It is right but for what is named here. */
export interface Fault {
  /** An answer in place of the right one, with text that must reach no caller. The call is not carried out. */
  readonly status?: number;
  readonly headers?: Answer['headers'];
  readonly body?: string;
  /** Members of the record in place of the right ones; undefined leaves one out. */
  readonly set?: Readonly<Record<string, unknown>>;
  readonly change?: (answer: Answer, call: Received) => Answer;
  /** The answer is decided on arrival, and sent after this time. */
  readonly delayMs?: number;
  /** The answer is decided on arrival, and sent when `release(gate)` of the sandbox is called. */
  readonly gate?: string;
  /** The time before each byte of the body. */
  readonly dripMs?: number;
  /** The connection ends before the answer, in the middle of it, or after it although keep-alive was promised. */
  readonly cut?: 'before' | 'half' | 'after';
}

/** Keeps `send` until the gate is released; gives the function that forgets it. */
export type Hold = (gate: string, send: () => void) => () => void;

export function answerWithFault(fault: Fault, call: Received, response: ServerResponse, hold: Hold): void {
  const { delayMs = 0, gate, dripMs, cut } = fault;
  const answer = answerOfFault(fault, call);
  const { status, headers, body } = answer;
  if (gate !== undefined) {
    const forget = hold(gate, () => sendAnswer(response, answer));
    response.once('close', forget);
  } else if (dripMs !== undefined) void drip(response, answer, dripMs);
  else if (cut === 'before') response.socket?.resetAndDestroy();
  else if (cut === 'half') {
    response.writeHead(status, headers).write(body.subarray(0, body.length / 2), () => response.socket?.end());
  } else {
    if (cut === 'after') response.once('finish', () => response.socket?.end());
    sendAnswer(response, { ...answer, delayMs });
  }
}

/** The answer with another body; its Content-Type stays. */
export function withBody(answer: Answer, body: Buffer | string): Answer {
  const bytes = Buffer.from(body);
  return { ...answer, headers: { ...answer.headers, 'content-length': bytes.length }, body: bytes };
}

/** The answer with other members in its record. Errors stay unchanged: they hold no record. */
export function withMembers(answer: Answer, members: Readonly<Record<string, unknown>>): Answer {
  if (answer.status >= 300) return answer;
  return withBody(answer, JSON.stringify({ ...JSON.parse(answer.body.toString()), ...members }));
}

function answerOfFault({ status, headers = {}, body, set = {}, change }: Fault, call: Received): Answer {
  let answer = marked(status === undefined ? answerTo(call) : errorAnswer(status, 'Wanted by a fault'));
  answer = body === undefined ? withMembers(answer, set) : withBody(answer, body);
  answer = { ...answer, headers: { ...answer.headers, ...headers } };
  return change ? change(answer, call) : answer;
}

async function drip(response: ServerResponse, { status, headers, body }: Answer, everyMs: number) {
  response.writeHead(status, headers).flushHeaders();
  for (const byte of body) {
    await delay(everyMs);
    if (response.destroyed) return;
    response.write(Buffer.of(byte));
  }
  response.end();
}
