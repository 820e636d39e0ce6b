import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../auth/caller.js';
import type { Identity } from '../auth/identify.js';
import type { Answer } from '../operations/Exit.js';
import type { OperationFacts } from '../operations/OperationContext.js';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id: the caller's, if well formed, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : randomUUID();
}

/** Writes a refusal in its one form, unless an answer has begun or nobody is left to read it. */
export function writeRefusal(
  response: ServerResponse,
  requestId: string,
  { status, allow, errors, text }: Answer,
): void {
  if (response.headersSent || response.destroyed) return;
  const retryAfterSeconds = errors[0]?.extensions?.['retryAfterSeconds'];
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (allow !== undefined) response.setHeader('allow', allow);
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds));
  response.writeHead(status, [
    ...['x-request-id', requestId, 'cache-control', 'no-store'],
    ...['content-type', 'application/json; charset=utf-8', 'content-length', `${Buffer.byteLength(text)}`],
  ]);
  response.end(text);
}

/** The facts of a plain HTTP request. Its signal is made when first asked for, which only a long wait does. */
export class HttpFacts implements OperationFacts {
  readonly caller: Caller;
  readonly fromRouter: boolean | undefined;
  #signal: AbortSignal | undefined;

  constructor(
    { caller, fromRouter }: Identity,
    readonly requestId: string,
    readonly startedAt: number,
    readonly response: ServerResponse,
  ) {
    this.caller = caller;
    this.fromRouter = fromRouter;
  }

  /** Aborts when the connection ends before the answer was written. */
  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    if (this.response.destroyed) controller.abort();
    this.response.once('close', () => {
      if (!this.response.writableFinished) controller.abort();
    });
    return controller.signal;
  }
}
