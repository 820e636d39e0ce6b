import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { authUnavailable } from '../errors/errors.js';
import { fetchJson, NoAnswer } from '../network/exchange.js';
import { episodes, type Report } from '../observability/episodes.js';
import { mostRemembered } from '../process/memory.js';
import type { Trail } from '../process/Trail.js';
import type { Surroundings } from '../services.js';
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

  readonly #report: Report;

  constructor(
    private readonly url: string,
    private readonly surroundings: Surroundings,
  ) {
    const { log } = surroundings;
    this.#report = episodes({
      log,
      begins: 'the decision point cannot decide',
      ends: 'the decision point decides again',
    });
  }

  /** The cached decision while it is valid. Otherwise joins an equal question in flight, or calls `ask`; rejects as that does. */
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

  /**
   * Calls the decision point once for all questions of a request, and notes the call in the trail of its operation.
   * @throws GatewayError AUTH_UNAVAILABLE
   */
  async decide(profile: Profile, requestId: string, trail: Trail, questions: readonly Question[]) {
    const { config, metrics } = this.surroundings;
    const ttlMs = 1000 * config.AUTH_DECISION_TTL_SECONDS;
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
      const ms = performance.now() - startedAt;
      const outcome = failure?.kind ?? 'ok';
      trail.note({ endpoint, method: 'POST', server: this.url, outcome, startedAt, ms });
      metrics.decisionSeconds.observe({ outcome }, ms / 1000);
      this.#report(failure?.kind, failure?.reason);
    }
  }

  /** @throws NoAnswer */
  async #call(
    endpoint: 'evaluation' | 'evaluations',
    { subject: id, properties }: Profile,
    requestId: string,
    questions: readonly Question[],
  ) {
    const { config, agents } = this.surroundings;
    const token = config.AUTH_DECISION_TOKEN?.reveal();
    const evaluations = questions.map(({ action: name, taxpayer }) => ({
      action: { name },
      resource: { type: 'taxpayer', id: taxpayer },
    }));
    const isOne = endpoint === 'evaluation';
    const answer = await fetchJson(agents.others, `${this.url}/access/v1/${endpoint}`, deadlineMs, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-request-id': requestId,
        // A token that names its own scheme (`Basic …`) is sent unchanged.
        ...(token && { authorization: token.includes(' ') ? token : `Bearer ${token}` }),
      },
      body: JSON.stringify({
        subject: { type: 'user', id, properties },
        ...(isOne ? evaluations[0] : { evaluations }),
      }),
    });
    const decisions = answerSchema.safeParse(isOne ? { evaluations: [answer] } : answer).data?.evaluations;
    if (decisions?.length !== questions.length) {
      throw new NoAnswer('invalid', 'the answer does not decide what was asked');
    }
    return decisions;
  }
}

const answerSchema = z.object({ evaluations: z.array(z.object({ decision: z.boolean() })) });
