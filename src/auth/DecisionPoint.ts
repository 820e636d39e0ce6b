import { createHmac } from 'node:crypto';
import type { Secret } from '../config/secret.js';
import { decisionTokenForm } from '../config/settings.js';
import { watchSecretFile } from '../config/watchFile.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import {
  type Asker,
  askDecisionPoint,
  type DecisionAddress,
  type DecisionEndpoint,
  type DecisionFailure,
  endpointFor,
  type Question,
} from './askDecisionPoint.js';
import type { Caller } from './caller.js';

export type { Asker, Question } from './askDecisionPoint.js';

/** A decision, and until when (of the monotonic clock) it is valid. */
export interface Decision {
  readonly isAllowed: boolean;
  readonly until: number;
}

/** A call as metrics, traces and the log see it. */
export interface DecisionCall {
  readonly endpoint: DecisionEndpoint;
  readonly outcome: 'ok' | DecisionFailure['fault'];
  /** In a few words, when it failed. */
  readonly cause: string | undefined;
  readonly seconds: number;
}

export interface DecisionPointOptions extends Omit<DecisionAddress, 'authorization'> {
  /** Sent as a bearer token, or unchanged when it names its own scheme (`Basic …`). */
  readonly token: Secret | undefined;
  /** Set when the token came from a file, which is then watched. */
  readonly tokenFile: string | undefined;
  /** How long a permission is cached, in milliseconds. */
  readonly ttlMs: number;
  readonly onCall?: (call: DecisionCall) => void;
  readonly onDecided?: (isAllowed: boolean, from: 'asked' | 'remembered') => void;
  /** Called when the token's file has changed; `isUsed`: whether the new token is well formed and now in use. */
  readonly onToken?: (isUsed: boolean) => void;
}

/** Time for a call and its retry together, in milliseconds. */
const deadlineMs = 1000;
/** How long a refusal is cached at most, in milliseconds. */
const refusedMs = 5000;
/** Permissions and refusals cached. Made-up ids cause any number of refusals, which must not evict permissions. */
const maxAllowed = 100_000;
const maxRefused = 10_000;

/**
 * Asks a decision point about taxpayers that a caller's token does not list. Caches the decisions for a time, under keyed
 * hashes. Without a decision the caller is refused, and nothing is cached.
 */
export class DecisionPoint {
  readonly #allowed = new BoundedCache<Decision>({ max: maxAllowed });
  readonly #refused = new BoundedCache<Decision>({ max: maxRefused });
  readonly #asking = new Map<string, Promise<Decision>>();
  /** Keyed hashes that tell callers apart: of the caller's key and of the properties that the decision point is told. */
  readonly #names = new WeakMap<Caller, string>();
  /** Cache of recent keyed hashes: computing one costs ten times as much as finding it here. */
  readonly #keys = new BoundedCache<string>({ max: 10_000 });
  /** The key of the hashes, known to this process only. */
  readonly #secret: string;
  #address: DecisionAddress;
  readonly #unwatch: () => void;

  constructor(private readonly options: DecisionPointOptions) {
    const { url, agent, token, tokenFile, onToken } = options;
    this.#address = { url, agent };
    this.#secret = crypto.getRandomValues(Buffer.alloc(32)).toString('base64url');
    const use = (secret: Secret) => {
      const text = secret.reveal();
      const isUsed = decisionTokenForm.test(text);
      if (isUsed) this.#address = { url, agent, authorization: text.includes(' ') ? text : `Bearer ${text}` };
      return isUsed;
    };
    if (token) use(token);
    if (tokenFile === undefined) this.#unwatch = () => {};
    else {
      const onRotated = (secret: Secret) => onToken?.(use(secret));
      const onRefused = () => onToken?.(false);
      this.#unwatch = watchSecretFile(tokenFile, { minLength: 1, secret: token, onRotated, onRefused });
    }
  }

  stop(): void {
    this.#unwatch();
  }

  /** The cached decision, if it is still valid. */
  known(caller: Caller, operation: string, question: Question): Decision | undefined {
    const decision = this.#held(this.#keyOf(caller, operation, question));
    if (decision !== undefined) this.options.onDecided?.(decision.isAllowed, 'remembered');
    return decision;
  }

  /**
   * Decides all questions with at most one call. Joins the calls in flight for questions that are already being asked.
   * @returns for each question a decision, or GatewayError AUTH_UNAVAILABLE or RATE_LIMITED when there is none
   */
  ask(caller: Caller, asker: Asker, questions: readonly Question[]): Promise<readonly (Decision | GatewayError)[]> {
    const fresh = new Map<string, Question>();
    const keys = questions.map((question) => {
      const key = this.#keyOf(caller, asker.operation, question);
      if (this.#held(key) === undefined && !this.#asking.has(key)) fresh.set(key, question);
      return key;
    });
    if (fresh.size > 0) this.#begin(asker, fresh);
    return Promise.all(
      keys.map((key) => this.#held(key) ?? this.#asking.get(key)?.catch((error: GatewayError) => error)),
    ) as Promise<readonly (Decision | GatewayError)[]>;
  }

  /** Calls `look` when a decision expires; returns how to cancel that. */
  whenOver({ until }: Decision, look: () => void): () => void {
    const leftMs = until - performance.now();
    const timer = setTimeout(look, Math.max(leftMs, 0)).unref();
    return () => clearTimeout(timer);
  }

  #begin(asker: Asker, fresh: ReadonlyMap<string, Question>): void {
    const deciding = this.#decide(asker, [...fresh.values()]);
    for (const [place, key] of [...fresh.keys()].entries()) {
      const decided = deciding.then((decisions) => this.#remember(key, decisions[place] as Decision));
      this.#asking.set(key, decided);
      const forget = () => this.#asking.delete(key);
      decided.then(forget, forget);
    }
  }

  /** @throws GatewayError AUTH_UNAVAILABLE, or RATE_LIMITED when there is no place for the call */
  async #decide(asker: Asker, questions: readonly Question[]): Promise<readonly Decision[]> {
    const { ttlMs, onDecided } = this.options;
    const leavePlace = asker.takePlace?.();
    const askedAt = performance.now();
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), deadlineMs);
    const answer = await this.#callTwiceAtMost(asker, questions, limit.signal).finally(() => {
      clearTimeout(timer);
      leavePlace?.();
    });
    if ('fault' in answer) throw undecided(answer.cause);
    // The time counts from the question: a right may be withdrawn while the answer is on its way.
    return answer.map((isAllowed) => {
      onDecided?.(isAllowed, 'asked');
      return { isAllowed, until: askedAt + (isAllowed ? ttlMs : Math.min(ttlMs, refusedMs)) };
    });
  }

  /** The decision point may have closed a kept-alive connection, and asking twice changes nothing. */
  async #callTwiceAtMost(asker: Asker, questions: readonly Question[], signal: AbortSignal) {
    const answer = await this.#call(asker, questions, signal);
    return 'fault' in answer && answer.fault === 'network' ? this.#call(asker, questions, signal) : answer;
  }

  async #call(asker: Asker, questions: readonly Question[], signal: AbortSignal) {
    const startedAt = performance.now();
    const answer = await askDecisionPoint(this.#address, asker, questions, signal);
    const [outcome, cause] = 'fault' in answer ? [answer.fault, answer.cause] : (['ok', undefined] as const);
    const seconds = (performance.now() - startedAt) / 1000;
    this.options.onCall?.({ endpoint: endpointFor(questions), outcome, cause, seconds });
    return answer;
  }

  #remember(key: string, decision: Decision): Decision {
    const [kept, other] = decision.isAllowed ? [this.#allowed, this.#refused] : [this.#refused, this.#allowed];
    other.delete(key);
    kept.set(key, decision);
    return decision;
  }

  #held(key: string): Decision | undefined {
    const decision = this.#allowed.get(key) ?? this.#refused.get(key);
    return decision !== undefined && performance.now() < decision.until ? decision : undefined;
  }

  /** A hash of all that the answer may depend on. Only the last part can contain a line break, so no two texts collide. */
  #keyOf(caller: Caller, operation: string, { action, taxpayer }: Question): string {
    let name = this.#names.get(caller);
    if (name === undefined) {
      name = this.#hash(JSON.stringify([caller.key, caller.properties]));
      this.#names.set(caller, name);
    }
    const text = `${name}\n${operation}\n${action}\n${taxpayer}`;
    const known = this.#keys.get(text);
    if (known !== undefined) return known;
    const key = this.#hash(text);
    this.#keys.set(text, key);
    return key;
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

function undecided(cause: string): GatewayError {
  const message = 'The decision point cannot say at the moment whether the caller may see this taxpayer';
  const reason = `decision point: ${cause}`;
  return new GatewayError('AUTH_UNAVAILABLE', message, { httpStatus: 503, retryAfterSeconds: 1, reason });
}
