import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../auth/caller.js';
import type { Identity } from '../auth/identify.js';
import type { Answer } from '../operations/answer.js';
import { type Client, clientOf } from '../operations/clientName.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import { plainJson, readAccept } from './accept.js';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id: the caller's, if well formed, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : crypto.randomUUID();
}

/** The facts of an HTTP request. Most requests need no abort signal, so it is created on first use. */
export class HttpFacts {
  readonly requestId: string;
  readonly startedAt = performance.now();
  declare caller?: Caller;
  fromRouter: boolean | undefined;
  #signal: AbortSignal | undefined;

  constructor(
    private readonly response: ServerResponse,
    readonly remoteAddress: string | undefined,
  ) {
    this.requestId = requestIdOf(response.req);
  }

  /** The same facts, once it is known who asks. */
  of({ caller, fromRouter }: Identity): OperationFacts {
    this.caller = caller;
    this.fromRouter = fromRouter;
    return this as OperationFacts;
  }

  get request(): IncomingMessage {
    return this.response.req;
  }

  statusOf(answer: Pick<Answer, 'kind' | 'status'>): number {
    const { json = plainJson } = readAccept(this.response.req.headers.accept);
    return json.statusOf(answer);
  }

  get client(): Client {
    return clientOf(this.response.req.headers);
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
