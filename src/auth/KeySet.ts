import { type CryptoKey, createLocalJWKSet, errors, type JWK, type JWSHeaderParameters } from 'jose';
import { GatewayError } from '../errors/errors.js';
import { pause } from '../process/pause.js';
import { type KeyPlace, readIssuerKeys } from './discovery.js';
import type { ReadFailure, ReadFault } from './readJson.js';

/** Where the keys of one issuer come from. */
export interface KeySource {
  /** Changes whenever the keys do; a token verified under another version must be verified again. */
  readonly version: number;
  /** How long the keys may still be used unless the provider confirms them again, in milliseconds. */
  readonly usableForMs: number;
  /** The keys that fit the header's `alg` and `kid`, if any, and the version of the set they were taken from. */
  keysFor(header: JWSHeaderParameters): Promise<{ keys: readonly (CryptoKey | JWK)[]; version: number }>;
  /** For a token that no key of version `seen` verifies: true when there is a newer version to try. */
  lookAgain(seen: number): Promise<boolean>;
}

export interface KeySetOptions extends KeyPlace {
  /** Called after a read that failed. */
  readonly onFailure?: (fault: ReadFault, cause: string) => void;
  /** Called after a read that brought keys. */
  readonly onRead?: () => void;
  /** Time between reads in the background; at most half of `maxAgeMs`. */
  readonly refreshMs?: number;
  /** How long keys are used after the provider last confirmed them: a withdrawn key must not stay valid for ever. */
  readonly maxAgeMs?: number;
  /** Time for one read. */
  readonly deadlineMs?: number;
}

const lookAgainMs = 10_000;
const firstBackoffMs = 1_000;
const lastBackoffMs = 10_000;
/** Most keys tried for a token without `kid`, so that a forged token has a bounded cost. */
export const maxCandidates = 8;

/**
 * The published keys of one identity provider (RFC 7517), read in the background once started, on first need otherwise.
 * jose chooses among them; this class decides when to read. Keys that were read once serve while the provider is out of
 * reach, for a bounded time.
 */
export class KeySet implements KeySource {
  readonly #options: Required<KeySetOptions>;
  readonly #stopped = new AbortController();
  #held: HeldKeys | undefined;
  /** The backoff after the last read, if it failed; otherwise 0. */
  #backoffMs = 0;
  #retryAt = -Infinity;
  #reading: Promise<void> | undefined;
  /** Why the last read failed. */
  #failure: ReadFailure = { fault: 'network', cause: 'it was not read yet' };
  #mayLookAgainAt = -Infinity;

  constructor(options: KeySetOptions) {
    this.#options = {
      onFailure: () => {},
      onRead: () => {},
      refreshMs: 600_000,
      maxAgeMs: 86_400_000,
      deadlineMs: 5_000,
      agentFor: undefined,
      ...options,
    };
  }

  get version(): number {
    return this.#held?.version ?? 0;
  }

  /** How long ago the provider last confirmed the held keys, in milliseconds; undefined before that. */
  get keysAgeMs(): number | undefined {
    return this.#held && performance.now() - this.#held.confirmedAt;
  }

  get usableForMs(): number {
    const { keysAgeMs } = this;
    return keysAgeMs === undefined ? 0 : Math.max(0, this.#options.maxAgeMs - keysAgeMs);
  }

  /** Reads the keys now and then until stopped, without keeping the process alive. */
  start(): void {
    void this.#keepFresh();
  }

  /** Ends the background reads and the one under way. The held keys stay usable. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Throws AUTH_UNAVAILABLE if no key was ever read, or the last read is too long ago. Waits for a read only then. */
  async keysFor(header: JWSHeaderParameters) {
    if (this.usableForMs === 0 && (this.#reading || this.#waitMs() === 0)) await this.#read();
    if (!this.#held || this.usableForMs === 0) {
      const retryAfterSeconds = Math.max(1, Math.ceil(this.#waitMs() / 1000));
      const message = 'The keys of the identity provider cannot be read at the moment';
      const reason = `key set: ${this.#failure.cause}`;
      throw new GatewayError('AUTH_UNAVAILABLE', message, { httpStatus: 503, retryAfterSeconds, reason });
    }
    const { choose, version } = this.#held; // both before the wait: a read meanwhile must not give old keys the new version
    return { keys: await candidates(choose, header), version };
  }

  /** Reads the set at most once per 10 seconds for this reason, so that made-up tokens cannot hammer the provider. */
  async lookAgain(seen: number): Promise<boolean> {
    if (this.version === seen && (this.#reading || this.#mayLookAgain())) await this.#read();
    return this.version !== seen;
  }

  #mayLookAgain(): boolean {
    const now = performance.now();
    if (now < this.#mayLookAgainAt || this.#waitMs() > 0) return false;
    this.#mayLookAgainAt = now + lookAgainMs;
    return true;
  }

  /** What is left of the backoff after a failed read. */
  #waitMs(): number {
    return Math.max(0, this.#retryAt - performance.now());
  }

  /** One read at a time, shared by concurrent callers. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { deadlineMs, onFailure, onRead } = this.#options;
    // Not AbortSignal.timeout: Node.js may collect such a signal if only AbortSignal.any refers to it, and it never aborts.
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), deadlineMs).unref();
    const read = await readIssuerKeys(this.#options, AbortSignal.any([limit.signal, this.#stopped.signal]));
    clearTimeout(timer);
    if (!('fault' in read)) {
      this.#hold(read);
      return onRead();
    }
    if (this.#stopped.signal.aborted) return;
    this.#backoffMs = Math.min(2 * this.#backoffMs || firstBackoffMs, lastBackoffMs);
    this.#retryAt = performance.now() + this.#backoffMs * (1 + Math.random() / 4);
    this.#failure = read;
    onFailure(read.fault, read.cause);
  }

  #hold(keys: readonly JWK[]): void {
    const text = JSON.stringify(keys.map((key) => JSON.stringify(key)).sort());
    if (text !== this.#held?.text) {
      const choose = createLocalJWKSet({ keys: [...keys] });
      this.#held = { version: this.version + 1, text, choose, confirmedAt: 0 };
    }
    this.#held.confirmedAt = performance.now();
    this.#backoffMs = 0;
    this.#retryAt = -Infinity;
  }

  async #keepFresh(): Promise<void> {
    const refreshMs = Math.min(this.#options.refreshMs, this.#options.maxAgeMs / 2);
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#read();
      const pauseMs = this.#waitMs() || refreshMs * (0.9 + Math.random() / 5);
      await pause(pauseMs, { ref: false, signal });
    }
  }
}

interface HeldKeys {
  readonly version: number;
  /** The keys as text, to notice a change. */
  readonly text: string;
  readonly choose: Choose;
  /** When the provider last published them. */
  confirmedAt: number;
}

type Choose = (header: JWSHeaderParameters) => Promise<CryptoKey>;

/** Chooses keys by `alg` and `kid` only: a key that the token brings along (`jwk`, `jku`, `x5u`, `x5c`) is ignored. */
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
