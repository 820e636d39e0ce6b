import type { ServerResponse } from 'node:http';

/** A whole HTTP answer, ready to be written; made once and sent many times where nothing changed in between. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
}

/** Stands in every error of the sandbox, body and header alike: seen at a caller, it proves that upstream text leaked. */
export const upstreamOnlyText = 'SANDBOX-UPSTREAM-INTERNAL-TEXT';

export function answerOf(status: number, contentType: string, body: Buffer | string): Answer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return { status, headers: { 'content-type': contentType, 'content-length': bytes.length }, body: bytes };
}

export function jsonAnswer(status: number, value: unknown): Answer {
  return answerOf(status, 'application/json', JSON.stringify(value));
}

export function errorAnswer(status: number, message: string, headers: Record<string, string> = {}): Answer {
  const answer = jsonAnswer(status, { error: { status, message, detail: `${upstreamOnlyText}: ${message}` } });
  return { ...answer, headers: { ...answer.headers, 'x-sandbox-detail': upstreamOnlyText, ...headers } };
}

/** Writes the answer unless the client has left. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  if (response.destroyed) return;
  response.writeHead(answer.status, answer.headers).end(answer.body);
}

/** Runs `next` after a delay in milliseconds, at once when there is none, never once the client has left. */
export function afterDelay(delayMs: number, response: ServerResponse, next: () => void): void {
  if (delayMs <= 0) {
    next();
    return;
  }
  const timer = setTimeout(next, delayMs);
  response.once('close', () => clearTimeout(timer));
}
