import { createHmac } from 'node:crypto';
import type { Secret } from '../config/secret.js';
import { decisionTokenForm } from '../config/settings.js';
import { watchSecretFile } from '../config/watchFile.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { type Runtime, realRuntime, type Timer } from '../process/Runtime.js';
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

/** What was decided, and until when (of the monotonic clock) it may be gone by. */
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
  /** Sent as a bearer token; with a scheme of its own (`Basic …`) as it is. */
  readonly token: Secret | undefined;
  /** Set when the token came from a file, which is then watched. */
  readonly tokenFile: string | undefined;
  /** How long a permission is remembered, in milliseconds. */
  readonly ttlMs: number;
  readonly onCall?: (call: DecisionCall) => void;
  readonly onDecided?: (isAllowed: boolean, from: 'asked' | 'remembered') => void;
  /** `isUsed`: whether the new token of the file can be one. */
  readonly onToken?: (isUsed: boolean) => void;
  readonly runtime?: Runtime;
}

/** Time for a call, in milliseconds. */
const deadlineMs = 1000;
/** How long a refusal is remembered at most, in milliseconds. */
const refusedMs = 5000;
/** Permissions remembered, and refusals, of which made-up ids bring any number. */
const maxAllowed = 100_000;
const maxRefused = 10_000;

/**
 * Asks a decision point about taxpayers that a caller's token does not list, and remembers what it decided, for a time and
 * under keyed hashes. What cannot be decided is refused and not remembered.
 */
export class DecisionPoint {
  readonly #allowed = new BoundedCache<Decision>({ max: maxAllowed });
  readonly #refused = new BoundedCache<Decision>({ max: maxRefused });
  readonly #asking = new Map<string, Promise<Decision>>();
  /** What tells askers apart: a keyed hash of the caller and of what the decision point is told of them. */
  readonly #names = new WeakMap<Caller, string>();
  /** The keyed hashes of late: making one costs ten times as much as finding it here. */
  readonly #keys = new BoundedCache<string>({ max: 10_000 });
  /** Of the hashes; of this process alone. */
  readonly #secret: string;
  readonly #runtime: Runtime;
  #address: DecisionAddress;
  readonly #unwatch: () => void;

  constructor(private readonly options: DecisionPointOptions) {
    const { url, agent, token, tokenFile, onToken, runtime = realRuntime } = options;
    this.#address = { url, agent };
    this.#runtime = runtime;
    this.#secret = runtime.randomBytes(32).toString('base64url');
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

  /** What is remembered and still holds. */
  known(caller: Caller, operation: string, question: Question): Decision | undefined {
    const decision = this.#held(this.#keyOf(caller, operation, question));
    if (decision !== undefined) this.options.onDecided?.(decision.isAllowed, 'remembered');
    return decision;
  }

  /**
   * Decides all questions with at most one call; what is being asked already is waited for.
   * @returns for each question a decision, or GatewayError AUTH_UNAVAILABLE when there is none
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

  /** Calls `look` when a decision's time is over; returns how to cancel that. */
  whenOver({ until }: Decision, look: () => void): () => void {
    const leftMs = until - this.#runtime.monotonicNow();
    const timer: Timer = this.#runtime.setTimeout(look, Math.max(leftMs, 0)).unref();
    return () => this.#runtime.clearTimer(timer);
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

  /** @throws GatewayError AUTH_UNAVAILABLE */
  async #decide(asker: Asker, questions: readonly Question[]): Promise<readonly Decision[]> {
    const { ttlMs, onDecided } = this.options;
    const askedAt = this.#runtime.monotonicNow();
    const limit = new AbortController();
    const timer = this.#runtime.setTimeout(() => limit.abort(), deadlineMs);
    let answer = await this.#call(asker, questions, limit.signal);
    // A connection that was kept open may have been closed at the other end; to ask twice changes nothing.
    if ('fault' in answer && answer.fault === 'network') answer = await this.#call(asker, questions, limit.signal);
    this.#runtime.clearTimer(timer);
    if ('fault' in answer) throw undecided(answer.cause);
    // From the question on: a right that is withdrawn while the answer is on its way counts as withdrawn after it.
    return answer.map((isAllowed) => {
      onDecided?.(isAllowed, 'asked');
      return { isAllowed, until: askedAt + (isAllowed ? ttlMs : Math.min(ttlMs, refusedMs)) };
    });
  }

  async #call(asker: Asker, questions: readonly Question[], signal: AbortSignal) {
    const startedAt = this.#runtime.monotonicNow();
    const answer = await askDecisionPoint(this.#address, asker, questions, signal);
    const [outcome, cause] = 'fault' in answer ? [answer.fault, answer.cause] : (['ok', undefined] as const);
    const seconds = (this.#runtime.monotonicNow() - startedAt) / 1000;
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
    return decision !== undefined && this.#runtime.monotonicNow() < decision.until ? decision : undefined;
  }

  /** Everything that the answer may depend on. None of the parts but the last can hold a line break. */
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
