import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import type { Answer } from '../operations/Exit.js';

const shortText = z.string().min(1).max(1024);

/** `extensions.subscription` of Apollo Router's HTTP callback protocol, version 1.0. */
export const callbackTarget = z.object({
  callbackUrl: z.url().max(2048),
  subscriptionId: shortText,
  verifier: shortText,
  /** 0 turns the heartbeat off. */
  heartbeatIntervalMs: z.number().int().min(0).max(3_600_000).default(5000),
});

export type CallbackTarget = z.output<typeof callbackTarget>;

/** Milliseconds that one post may take. */
const timeoutMs = 5000;
/** Milliseconds to wait before each further try of a post. */
const retryPausesMs = [100, 200, 400, 800, 1000];
const mostFailedHeartbeats = 5;
const shortestHeartbeatMs = 500;

/** Posts to one subscription's callback address. Redirects are refused: they could lead to an origin that is not allowed. */
export class CallbackPoster {
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(
    private readonly target: CallbackTarget,
    private readonly onPost?: (url: string, startedAt: number, status: number | undefined) => void,
  ) {}

  /** Whether the router knows the subscription. */
  async check(): Promise<boolean> {
    return (await this.#post('check')) === 204;
  }

  /** Posts a result; returns whether the router accepted it. */
  next({ text }: Answer): Promise<boolean> {
    return this.#insist('next', `,"payload":${text}`);
  }

  /** Posts the end of the subscription, with `errors` when it failed or was cut. */
  async complete(errors?: readonly { readonly message: string }[]): Promise<void> {
    await this.#insist('complete', errors && `,"errors":${JSON.stringify(errors)}`);
  }

  /** Checks at intervals; calls `onGone` when the router no longer knows the subscription or too many checks fail. */
  startHeartbeat(onGone: () => void): void {
    const { heartbeatIntervalMs } = this.target;
    if (heartbeatIntervalMs === 0) return;
    let failures = 0;
    const beat = async () => {
      const status = await this.#post('check');
      failures = status === 204 ? 0 : failures + 1;
      if (this.#heartbeat === undefined) return;
      if (status === 400 || status === 404 || failures >= mostFailedHeartbeats) onGone();
      else this.#heartbeat.refresh();
    };
    this.#heartbeat = setTimeout(() => void beat(), Math.max(heartbeatIntervalMs, shortestHeartbeatMs));
  }

  /** Ends the heartbeat. */
  stop(): void {
    clearTimeout(this.#heartbeat);
    this.#heartbeat = undefined;
  }

  /** Posts, and retries when there is no answer or a 5xx; returns whether the router accepted the message. */
  async #insist(action: 'next' | 'complete', members?: string): Promise<boolean> {
    for (const pauseMs of [...retryPausesMs, undefined]) {
      const status = await this.#post(action, members);
      if (status !== undefined && status < 500) return status >= 200 && status < 300;
      if (pauseMs !== undefined) await delay(pauseMs);
    }
    return false;
  }

  /** The status of the answer; undefined when there was none. */
  async #post(action: 'check' | 'next' | 'complete', members = ''): Promise<number | undefined> {
    const { callbackUrl, subscriptionId: id, verifier } = this.target;
    const startedAt = performance.now();
    let status: number | undefined;
    try {
      const response = await fetch(callbackUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'subscription-protocol': 'callback/1.0' },
        body: `${JSON.stringify({ kind: 'subscription', action, id, verifier }).slice(0, -1)}${members}}`,
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      status = response.status;
      await response.body?.cancel();
    } catch {}
    this.onPost?.(callbackUrl, startedAt, status);
    return status;
  }
}
