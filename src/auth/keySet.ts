import { type CryptoKey, createRemoteJWKSet, customFetch, errors, type JWK, type JWSHeaderParameters } from 'jose';
import { GatewayError } from '../errors/errors.js';
import { pause, type Runtime, realRuntime } from '../process/Runtime.js';
import { type AgentFor, type KeySetFailure, notAKeySet, type ReadFault, readKeySet } from './readKeySet.js';

/** Where the keys of one issuer come from. */
export interface KeySource {
  /** Changes whenever the keys do; what was verified under another version must be verified again. */
  readonly version: number;
  /** The keys that fit the header's `alg` and `kid`, if any, and the version of the set they were taken from. */
  keysFor(header: JWSHeaderParameters): Promise<{ keys: readonly (CryptoKey | JWK)[]; version: number }>;
  /** For a token that no key of version `seen` verifies: true when there is a newer version to try. */
  lookAgain(seen: number): Promise<boolean>;
}

export interface KeySetOptions {
  readonly url: string;
  /** Called after a read that failed. */
  readonly onFailure?: (fault: ReadFault, cause: string) => void;
  /** Called after a read that brought keys. */
  readonly onRead?: () => void;
  /** Time between reads in the background. */
  readonly refreshMs?: number;
  /** Time for one read. */
  readonly deadlineMs?: number;
  readonly runtime?: Runtime;
  /** Default: Node's own. */
  readonly agentFor?: AgentFor;
}

const lookAgainMs = 10_000;
const firstBackoffMs = 1_000;
const lastBackoffMs = 10_000;
/** A token without `kid` is tried on so many keys and no more, so that a forged one has a bounded cost. */
const maxCandidates = 8;

/**
 * The published keys of one identity provider (RFC 7517), read in the background once started, on first need otherwise.
 * jose reads and chooses among them; this class decides when to read. Keys that were read once serve for as long as the provider is out of reach: only a newer set replaces them.
 */
export class KeySet implements KeySource {
  readonly #options: Required<KeySetOptions>;
  readonly #remote;
  readonly #stopped = new AbortController();
  /** `text`: the keys as text, to notice a change. `confirmedAt`: when the provider last published them. */
  #held: { version: number; text: string; confirmedAt: number } | undefined;
  /** After the last read, when it failed; 0 otherwise. */
  #backoffMs = 0;
  #retryAt = -Infinity;
  #reading: Promise<void> | undefined;
  /** Why the last read failed. */
  #failure: KeySetFailure = { fault: 'network', cause: 'it was not read yet' };
  #mayLookAgainAt = -Infinity;

  constructor(options: KeySetOptions) {
    this.#options = {
      onFailure: () => {},
      onRead: () => {},
      refreshMs: 600_000,
      deadlineMs: 5_000,
      runtime: realRuntime,
      agentFor: () => undefined,
      ...options,
    };
    this.#remote = createRemoteJWKSet(new URL(options.url), {
      cacheMaxAge: Number.POSITIVE_INFINITY,
      cooldownDuration: Number.POSITIVE_INFINITY,
      [customFetch]: async (url) => Response.json({ keys: await this.#fetch(url) }),
    });
  }

  get version(): number {
    return this.#held?.version ?? 0;
  }

  /** How long ago the provider last confirmed the held keys, in milliseconds; undefined before that. */
  get keysAgeMs(): number | undefined {
    return this.#held && this.#options.runtime.monotonicNow() - this.#held.confirmedAt;
  }

  /** Reads the keys now and then until stopped, without keeping the process alive. */
  start(): void {
    void this.#keepFresh();
  }

  /** Ends the background reads and the one under way. The held keys stay usable. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Throws AUTH_UNAVAILABLE while no key was ever read. Waits only then. */
  async keysFor(header: JWSHeaderParameters) {
    if (!this.#held && (this.#reading || this.#waitMs() === 0)) await this.#read();
    if (!this.#held) {
      const retryAfterSeconds = Math.max(1, Math.ceil(this.#waitMs() / 1000));
      const message = 'The keys of the identity provider cannot be read at the moment';
      const reason = `key set: ${this.#failure.cause}`;
      throw new GatewayError('AUTH_UNAVAILABLE', message, { httpStatus: 503, retryAfterSeconds, reason });
    }
    const { version } = this.#held; // before the wait: a read meanwhile must not pass old keys off as the new version
    return { keys: await candidates(this.#remote, header), version };
  }

  /** Reads the set at most once per 10 seconds for this reason, so that made-up tokens cannot hammer the provider. */
  async lookAgain(seen: number): Promise<boolean> {
    if (this.version === seen && (this.#reading || this.#mayLookAgain())) await this.#read();
    return this.version !== seen;
  }

  #mayLookAgain(): boolean {
    const now = this.#options.runtime.monotonicNow();
    if (now < this.#mayLookAgainAt || this.#waitMs() > 0) return false;
    this.#mayLookAgainAt = now + lookAgainMs;
    return true;
  }

  /** How long the provider is still left alone after a failed read. */
  #waitMs(): number {
    return Math.max(0, this.#retryAt - this.#options.runtime.monotonicNow());
  }

  /** One read at a time, shared by concurrent callers. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { runtime, onFailure, onRead } = this.#options;
    try {
      await this.#remote.reload();
      this.#hold(this.#remote.jwks()?.keys ?? []);
      onRead();
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      this.#backoffMs = Math.min(2 * this.#backoffMs || firstBackoffMs, lastBackoffMs);
      this.#retryAt = runtime.monotonicNow() + this.#backoffMs * (1 + runtime.random() / 4);
      this.#failure = error instanceof Unreadable ? error.failure : notAKeySet;
      onFailure(this.#failure.fault, this.#failure.cause);
    }
  }

  async #fetch(url: string): Promise<readonly JWK[]> {
    // Node may collect a signal of AbortSignal.timeout, such as jose's, that only AbortSignal.any refers to: it never aborts.
    const limit = new AbortController();
    const { runtime, deadlineMs, agentFor } = this.#options;
    const timer = runtime.setTimeout(() => limit.abort(), deadlineMs).unref();
    const read = await readKeySet(url, AbortSignal.any([limit.signal, this.#stopped.signal]), agentFor);
    runtime.clearTimer(timer);
    if ('fault' in read) throw new Unreadable(read);
    return read;
  }

  #hold(keys: readonly JWK[]): void {
    const text = JSON.stringify(keys.map((key) => JSON.stringify(key)).sort());
    if (text !== this.#held?.text) {
      this.#held = { version: this.version + 1, text, confirmedAt: 0 };
    }
    this.#held.confirmedAt = this.#options.runtime.monotonicNow();
    this.#backoffMs = 0;
    this.#retryAt = -Infinity;
  }

  async #keepFresh(): Promise<void> {
    const { refreshMs, runtime } = this.#options;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#read();
      const pauseMs = this.#waitMs() || refreshMs * (0.9 + runtime.random() / 5);
      await pause(runtime, pauseMs, { ref: false, signal });
    }
  }
}

class Unreadable extends Error {
  constructor(readonly failure: KeySetFailure) {
    super(failure.fault);
  }
}

type Choose = (header: JWSHeaderParameters) => Promise<CryptoKey>;

/** Only `alg` and `kid` choose: a key the token brings along (`jwk`, `jku`, `x5u`, `x5c`) is never looked at. */
async function candidates(choose: Choose, { alg, kid }: JWSHeaderParameters): Promise<CryptoKey[]> {
  try {
    return [await choose({ alg, kid } as JWSHeaderParameters)];
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return [];
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    const keys: CryptoKey[] = [];
    for await (const key of error) {
      if (keys.push(key) === maxCandidates) break;
    }
    return keys;
  }
}
