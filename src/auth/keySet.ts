import { type CryptoKey, createLocalJWKSet, errors, type JWK, type JWTHeaderParameters, type LocalJWKSet } from 'jose';
import nodeFetch from 'node-fetch';
import { GatewayError } from '../errors/errors.js';
import { KeySetUnreadable, type ReadFailure, readKeySet } from './readKeySet.js';

/** The keys that may have signed a token, and the version of the set they were taken from. */
export interface CandidateKeys {
  readonly keys: readonly CryptoKey[];
  readonly version: number;
}

/** Where the keys of one issuer come from. */
export interface KeySource {
  /** Changes whenever the keys do; what was verified under another version must be verified again. */
  readonly version: number;
  /** The keys that fit the header's `alg` and `kid`; none when the set has no such key. */
  keysFor(header: JWTHeaderParameters): Promise<CandidateKeys>;
  /** For a token that no key of version `seen` verifies: true when there is a newer version to try. */
  lookAgain(seen: number): Promise<boolean>;
}

export type RefreshOutcome =
  | { readonly result: 'changed' | 'unchanged'; readonly keys: number }
  | { readonly result: 'failed'; readonly reason: ReadFailure };

export interface KeySetOptions {
  readonly url: string;
  /** Called after every read, for metrics and logs. */
  readonly onRefresh?: (outcome: RefreshOutcome) => void;
  /** Time between reads in the background; 10 minutes. */
  readonly refreshMs?: number;
  /** Time for one read; 5 seconds. */
  readonly deadlineMs?: number;
  /** In milliseconds, for durations alone; by default a clock that nobody sets. */
  readonly now?: () => number;
  readonly random?: () => number;
  readonly fetch?: typeof nodeFetch;
}

const lookAgainMs = 10_000;
const firstBackoffMs = 1_000;
const lastBackoffMs = 10_000;
/** A token without `kid` is tried on so many keys and no more, so that a forged one has a bounded cost. */
const maxCandidates = 8;
/** Why a read was cut off that is nobody's failure. */
const stopped = Symbol('stopped');

/**
 * The published keys of one identity provider (RFC 7517), read in the background once started, on first need otherwise.
 *
 * jose's own remote key set refuses keys older than its `cacheMaxAge` even while it still holds them. Here keys that
 * were once read serve for as long as the provider is out of reach; only a newer set replaces them.
 */
export class KeySet implements KeySource {
  readonly url: string;
  readonly #options: Required<KeySetOptions>;
  #held: LocalJWKSet | undefined;
  /** The held keys as text, to notice a change. */
  #heldText = '';
  #version = 0;
  #keysReadAt: number | undefined;
  #reading: Promise<void> | undefined;
  #abortReading: AbortController | undefined;
  #failures = 0;
  #failedAt = 0;
  #backoffMs = 0;
  #lookedAgainAt: number | undefined;
  #started = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: KeySetOptions) {
    this.url = options.url;
    this.#options = {
      onRefresh: () => {},
      refreshMs: 600_000,
      deadlineMs: 5_000,
      now: () => performance.now(),
      random: Math.random,
      fetch: nodeFetch,
      ...options,
    };
  }

  get version(): number {
    return this.#version;
  }

  /** How long ago the held keys were last confirmed by the provider, in milliseconds; undefined before that. */
  get keysAgeMs(): number | undefined {
    return this.#keysReadAt === undefined ? undefined : this.#options.now() - this.#keysReadAt;
  }

  /** Reads the keys now and then in the background. The timer does not keep the process alive. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    void this.#read();
  }

  /** Ends the background reads and the one under way. The held keys stay usable. */
  stop(): void {
    this.#started = false;
    clearTimeout(this.#timer);
    this.#abortReading?.abort(stopped);
  }

  /** Throws AUTH_UNAVAILABLE while no key was ever read. Waits only then. */
  async keysFor(header: JWTHeaderParameters): Promise<CandidateKeys> {
    if (!this.#held && (this.#reading || this.#waitMs() === 0)) await this.#read();
    if (!this.#held) {
      throw new GatewayError('AUTH_UNAVAILABLE', 'The keys of the identity provider cannot be read at the moment', {
        httpStatus: 503,
        retryAfterSeconds: Math.max(1, Math.ceil(this.#waitMs() / 1000)),
      });
    }
    // Taken before the wait: a read that ends meanwhile must not pass the old keys off as the new version.
    const version = this.#version;
    return { keys: await selectKeys(this.#held, header), version };
  }

  /** Reads the set at most once per 10 seconds for this reason, so that made-up tokens cannot hammer the provider. */
  async lookAgain(seen: number): Promise<boolean> {
    if (this.#version === seen) {
      if (this.#reading) await this.#reading;
      else if (this.#waitMs() === 0 && this.#mayLookAgain()) {
        this.#lookedAgainAt = this.#options.now();
        await this.#read();
      }
    }
    return this.#version !== seen;
  }

  #mayLookAgain(): boolean {
    return this.#lookedAgainAt === undefined || !this.#isWithin(lookAgainMs, this.#lookedAgainAt);
  }

  /** How long the provider is left alone after a failed read. */
  #waitMs(): number {
    if (this.#failures === 0 || !this.#isWithin(this.#backoffMs, this.#failedAt)) return 0;
    return this.#failedAt + this.#backoffMs - this.#options.now();
  }

  /** A clock that was set back counts as time passed: it must not stretch a pause to hours. */
  #isWithin(spanMs: number, since: number): boolean {
    const elapsed = this.#options.now() - since;
    return elapsed >= 0 && elapsed < spanMs;
  }

  /** One read at a time; who asks meanwhile shares it. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#readOnce().finally(() => {
      this.#reading = undefined;
      this.#schedule();
    });
    return this.#reading;
  }

  async #readOnce(): Promise<void> {
    const { fetch, deadlineMs, onRefresh } = this.#options;
    const abort = new AbortController();
    this.#abortReading = abort;
    const deadline = setTimeout(() => abort.abort(), deadlineMs);
    try {
      const keys = await readKeySet(this.url, { fetch, signal: abort.signal });
      onRefresh({ result: this.#hold(keys) ? 'changed' : 'unchanged', keys: keys.length });
    } catch (error) {
      if (!(error instanceof KeySetUnreadable)) throw error;
      if (abort.signal.reason === stopped) return;
      this.#fail();
      onRefresh({ result: 'failed', reason: error.reason });
    } finally {
      clearTimeout(deadline);
      // Lets go of a connection whose answer was not read to its end.
      abort.abort();
    }
  }

  #hold(keys: JWK[]): boolean {
    this.#failures = 0;
    this.#keysReadAt = this.#options.now();
    const text = JSON.stringify(keys.map((key) => JSON.stringify(key)).sort());
    if (text === this.#heldText) return false;
    this.#held = createLocalJWKSet({ keys });
    this.#heldText = text;
    this.#version += 1;
    return true;
  }

  #fail(): void {
    const growing = firstBackoffMs * 2 ** Math.min(this.#failures, 10);
    this.#failures += 1;
    this.#failedAt = this.#options.now();
    this.#backoffMs = Math.min(growing, lastBackoffMs) * (1 + this.#options.random() / 4);
  }

  #schedule(): void {
    if (!this.#started) return;
    const { refreshMs, random } = this.#options;
    const delayMs = this.#failures > 0 ? this.#backoffMs : refreshMs * (0.9 + random() / 5);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#read(), delayMs).unref();
  }
}

/** A source of one key that never changes. */
export function fixedKey(publicKey: JWK): KeySource {
  const set = createLocalJWKSet({ keys: [publicKey] });
  return {
    version: 1,
    keysFor: async (header) => ({ keys: await selectKeys(set, header), version: 1 }),
    lookAgain: async () => false,
  };
}

/** Only `alg` and `kid` choose: a key the token brings along (`jwk`, `jku`, `x5u`, `x5c`) is never looked at. */
async function selectKeys(set: LocalJWKSet, { alg, kid }: JWTHeaderParameters): Promise<CryptoKey[]> {
  try {
    return [await set({ alg, ...(kid !== undefined && { kid }) })];
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error;
    if (error.code === 'ERR_JWKS_NO_MATCHING_KEY') return [];
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    const keys: CryptoKey[] = [];
    for await (const key of error) {
      if (keys.push(key) === maxCandidates) break;
    }
    return keys;
  }
}
