import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from '../operations/Exit.js';

export interface CallbackTarget {
  readonly callbackUrl: string;
  readonly subscriptionId: string;
  readonly verifier: string;
  /** 0 turns the heartbeat off. */
  readonly heartbeatIntervalMs: number;
}

/** One post may take this long, in milliseconds. */
const timeoutMs = 5000;
/** Pauses before a post is tried again, in milliseconds. */
const retryPausesMs = [100, 200, 400, 800, 1000];
const mostFailedHeartbeats = 5;
const shortestHeartbeatMs = 500;

/** Posts to one subscription's callback address. Redirects are refused: they would lead to an origin nobody allowed. */
export class CallbackPoster {
  readonly #target: CallbackTarget;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(target: CallbackTarget) {
    this.#target = target;
  }

  /** Whether the router knows the subscription. */
  async check(): Promise<boolean> {
    return (await this.#post('check')) === 204;
  }

  /** Hands a result over; false when the router has no use for more. */
  next({ text }: Answer): Promise<boolean> {
    return this.#insist('next', `,"payload":${text}`);
  }

  /** Says that there is nothing more to come; with `errors` when that is not the end of the matter. */
  async complete(errors?: readonly { readonly message: string }[]): Promise<void> {
    await this.#insist('complete', errors && `,"errors":${JSON.stringify(errors)}`);
  }

  /** Asks again and again whether the router still listens; `onGone` when it does not. */
  startHeartbeat(onGone: () => void): void {
    const { heartbeatIntervalMs } = this.#target;
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

  /** Tries again while the router may only be unwell; whether it took the message. */
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
    const { callbackUrl, subscriptionId: id, verifier } = this.#target;
    try {
      const response = await fetch(callbackUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'subscription-protocol': 'callback/1.0' },
        body: `${JSON.stringify({ kind: 'subscription', action, id, verifier }).slice(0, -1)}${members}}`,
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.body?.cancel();
      return response.status;
    } catch {
      return undefined;
    }
  }
}
