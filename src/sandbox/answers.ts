import type { ServerResponse } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer;
  /** How long to wait before sending it, in milliseconds. */
  readonly delayMs?: number | undefined;
}

export function answerOf(status: number, contentType: string, text: string, headers: Answer['headers'] = {}): Answer {
  const body = Buffer.from(text);
  return { status, headers: { 'content-type': contentType, 'content-length': body.length, ...headers }, body };
}

export function jsonAnswer(status: number, value: unknown, headers?: Answer['headers']): Answer {
  return answerOf(status, 'application/json', JSON.stringify(value), headers);
}

export function errorAnswer(status: number, message: string, headers?: Answer['headers']): Answer {
  return jsonAnswer(status, { error: { status, message } }, headers);
}

/** Sends the answer when its time has come, unless the client has left. */
export function sendAnswer(response: ServerResponse, { status, headers, body, delayMs = 0 }: Answer): void {
  const send = () => {
    if (!response.destroyed) response.writeHead(status, headers).end(body);
  };
  if (delayMs > 0) setTimeout(send, delayMs).unref();
  else send();
}
