import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
}

/** Stands in every error of the sandbox, body and header alike: seen at a caller, it proves that upstream text leaked. */
export const upstreamOnlyText = 'SANDBOX-UPSTREAM-INTERNAL-TEXT';

export function answerOf(status: number, contentType: string, body: Buffer | string): Answer {
  const bytes = Buffer.from(body);
  return { status, headers: { 'content-type': contentType, 'content-length': bytes.length }, body: bytes };
}

export function jsonAnswer(status: number, value: unknown): Answer {
  return answerOf(status, 'application/json', JSON.stringify(value));
}

export function errorAnswer(status: number, message: string, headers: Answer['headers'] = {}): Answer {
  const answer = jsonAnswer(status, { error: { status, message, detail: `${upstreamOnlyText}: ${message}` } });
  return withHeaders(answer, { 'x-sandbox-detail': upstreamOnlyText, ...headers });
}

export function withHeaders(answer: Answer, headers: Answer['headers']): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** Writes the answer, unless the client has left. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  if (!response.destroyed) response.writeHead(answer.status, answer.headers).end(answer.body);
}

/** Calls `next` with the text of the body, at once when the request has none; never when the client leaves half-way. */
export function readBody(request: IncomingMessage, next: (body: string) => void): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (encoding === undefined && length === '0') next('');
  else text(request).then(next, () => {});
}
