import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { Secret } from '../config/Secret.js';
import { authUnavailable } from '../errors/errors.js';
import { type AgentFor, fetchJson, NoAnswer } from '../network/exchange.js';
import { mostRemembered } from '../process/BoundedCache.js';
import type { Trail } from '../process/Trail.js';
import type { Profile, TaxpayerScope } from './caller.js';

/** The question: may the caller do this with this taxpayer? */
export interface Question {
  readonly action: TaxpayerScope;
  readonly taxpayer: string;
}

/** A decision, and until when (of the monotonic clock) it is valid. */
export interface Decision {
  readonly isAllowed: boolean;
  readonly until: number;
}

interface DecisionPointOptions {
  readonly url: string;
  readonly agentFor: AgentFor;
  /** Sent as a bearer token, or unchanged when it names its own scheme (`Basic …`). */
  readonly token?: Secret | undefined;
  /** How long a permission is cached, in milliseconds. */
  readonly ttlMs: number;
  /** After each call, with `ok` or what went wrong, and why. */
  readonly onCall: (outcome: string, seconds: number, reason?: string) => void;
}

/** Time for a call, in milliseconds. */
const deadlineMs = 1000;
/** How long a refusal is cached at most, in milliseconds. */
const refusedMs = 5000;
/** Bytes that a remembered decision takes in memory. Measured: 717. */
const decisionBytes = 720;

/**
 * Asks a decision point, by the OpenID AuthZEN Authorization API 1.0, about taxpayers that a caller's token does not list.
 * Caches the decisions for a time. Without a decision the caller is refused, and nothing is cached.
 */
export class DecisionPoint {
  /** Decisions, made and in flight, by everything that they may depend on. An equal question joins one in flight. */
  readonly #decisions = new LRUCache<string, Decision, () => Promise<Decision>>({
    max: mostRemembered(decisionBytes),
    fetchMethod: (_key, _stale, { context: ask }) => ask(),
    ignoreFetchAbort: true, // a decision that is evicted still answers those who wait for it
  });

  constructor(private readonly options: DecisionPointOptions) {}

  /** The cached decision while it is valid. Otherwise joins an equal question in flight, or else calls `ask`; rejects as it does. */
  decisionOn(
    { action, taxpayer }: Question,
    profile: Profile,
    ask: () => Promise<Decision>,
  ): Decision | Promise<Decision> {
    // All that the answer may depend on. Only the last part can contain a line break, so no two keys collide.
    const key = `${profile.key}\n${action}\n${taxpayer}`;
    const known = this.#decisions.get(key);
    if (known !== undefined && performance.now() < known.until) return known;
    return this.#decisions.forceFetch(key, { context: ask, forceRefresh: true });
  }

  /** Calls the decision point once for all questions of a request, and notes the call in the trail of its operation. @throws GatewayError AUTH_UNAVAILABLE */
  async decide(profile: Profile, requestId: string, trail: Trail, questions: readonly Question[]) {
    const { url, ttlMs, onCall } = this.options;
    const endpoint = questions.length === 1 ? 'evaluation' : 'evaluations';
    // The time counts from the question: a right may be withdrawn while the answer is on its way.
    const startedAt = performance.now();
    let failure: NoAnswer | undefined;
    try {
      const answers = await this.#call(endpoint, profile, requestId, questions);
      return answers.map(({ decision: isAllowed }): Decision => {
        return { isAllowed, until: startedAt + Math.min(ttlMs, isAllowed ? Infinity : refusedMs) };
      });
    } catch (error) {
      failure = error as NoAnswer;
      const message = 'The decision point cannot say at the moment whether the caller may see this taxpayer';
      throw authUnavailable(message, `decision point: ${failure.reason}`);
    } finally {
      const outcome = failure?.kind === 'invalid' ? 'answer' : (failure?.kind ?? 'ok');
      const ms = performance.now() - startedAt;
      trail.note({ endpoint, method: 'POST', server: url, outcome, startedAt, ms });
      onCall(outcome, ms / 1000, failure?.reason);
    }
  }

  /** @throws NoAnswer */
  async #call(
    endpoint: 'evaluation' | 'evaluations',
    { subject: id, properties }: Profile,
    requestId: string,
    questions: readonly Question[],
  ) {
    const { url, agentFor: agent } = this.options;
    const token = this.options.token?.reveal();
    const evaluations = questions.map(({ action: name, taxpayer }) => ({
      action: { name },
      resource: { type: 'taxpayer', id: taxpayer },
    }));
    const isOne = endpoint === 'evaluation';
    const answer = await fetchJson(`${url}/access/v1/${endpoint}`, deadlineMs, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-request-id': requestId,
        ...(token && { authorization: token.includes(' ') ? token : `Bearer ${token}` }),
      },
      body: JSON.stringify({
        subject: { type: 'user', id, properties },
        ...(isOne ? evaluations[0] : { evaluations }),
      }),
      agent,
    });
    const read = decided.safeParse(isOne ? { evaluations: [answer] } : answer).data?.evaluations;
    if (read?.length !== questions.length) throw new NoAnswer('invalid', 'the answer does not decide what was asked');
    return read;
  }
}

const decided = z.object({ evaluations: z.array(z.object({ decision: z.boolean() })) });
