import { setTimeout as sleep } from 'node:timers/promises';
import { type CryptoKey, createRemoteJWKSet, customFetch, errors, type JWK, type JWTHeaderParameters } from 'jose';
import { GatewayError } from '../errors/errors.js';
import { KeySetUnreadable, type ReadFault, readKeySet } from './readKeySet.js';

/** Where the keys of one issuer come from. */
export interface KeySource {
  /** Changes whenever the keys do; what was verified under another version must be verified again. */
  readonly version: number;
  /** The keys that fit the header's `alg` and `kid`, if any, and the version of the set they were taken from. */
  keysFor(header: JWTHeaderParameters): Promise<{ readonly keys: readonly CryptoKey[]; readonly version: number }>;
  /** For a token that no key of version `seen` verifies: true when there is a newer version to try. */
  lookAgain(seen: number): Promise<boolean>;
}

export interface KeySetOptions {
  readonly url: string;
  /** Called after a read that failed. */
  readonly onFailure?: (reason: ReadFault) => void;
  /** Time between reads in the background; 10 minutes. */
  readonly refreshMs?: number;
  /** Time for one read; 5 seconds. */
  readonly deadlineMs?: number;
  /** Milliseconds of a clock that nobody sets. Default `performance.now`. */
  readonly now?: () => number;
  readonly random?: () => number;
}

const lookAgainMs = 10_000;
const firstBackoffMs = 1_000;
const lastBackoffMs = 10_000;
/** A token without `kid` is tried on so many keys and no more, so that a forged one has a bounded cost. */
const maxCandidates = 8;

/**
 * The published keys of one identity provider (RFC 7517), read in the background once started, on first need otherwise.
 * jose reads and holds them; when to read is decided here. Keys that were read once serve for as long as the provider is
 * out of reach: only a newer set replaces them.
 */
export class KeySet implements KeySource {
  readonly #options: Required<KeySetOptions>;
  readonly #remote;
  readonly #stopped = new AbortController();
  /** `text`: the keys as text, to notice a change. `confirmedAt`: when the provider last published them. */
  #held: { readonly version: number; readonly text: string; readonly confirmedAt: number } | undefined;
  /** Since the last good read. */
  #failures: { readonly count: number; readonly retryAt: number } | undefined;
  #reading: Promise<void> | undefined;
  #mayLookAgainAt = -Infinity;

  constructor(options: KeySetOptions) {
    this.#options = {
      onFailure: () => {},
      refreshMs: 600_000,
      deadlineMs: 5_000,
      now: () => performance.now(),
      random: Math.random,
      ...options,
    };
    this.#remote = createRemoteJWKSet(new URL(options.url), {
      timeoutDuration: this.#options.deadlineMs,
      cacheMaxAge: Number.POSITIVE_INFINITY,
      cooldownDuration: Number.POSITIVE_INFINITY,
      [customFetch]: async (url, { signal }) => {
        const keys = await readKeySet(url, AbortSignal.any([signal, this.#stopped.signal]));
        return Response.json({ keys });
      },
    });
  }

  get version(): number {
    return this.#held?.version ?? 0;
  }

  /** How long ago the provider last confirmed the held keys, in milliseconds; undefined before that. */
  get keysAgeMs(): number | undefined {
    return this.#held && this.#options.now() - this.#held.confirmedAt;
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
  async keysFor(header: JWTHeaderParameters) {
    if (!this.#held && (this.#reading || this.#waitMs() === 0)) await this.#read();
    if (!this.#held) {
      throw new GatewayError('AUTH_UNAVAILABLE', 'The keys of the identity provider cannot be read at the moment', {
        httpStatus: 503,
        retryAfterSeconds: Math.max(1, Math.ceil(this.#waitMs() / 1000)),
      });
    }
    // Taken before the wait: a read that ends meanwhile must not pass the old keys off as the new version.
    const { version } = this.#held;
    return { keys: await selectKeys(this.#remote, header), version };
  }

  /** Reads the set at most once per 10 seconds for this reason, so that made-up tokens cannot hammer the provider. */
  async lookAgain(seen: number): Promise<boolean> {
    if (this.version === seen && (this.#reading || this.#mayLookAgain())) await this.#read();
    return this.version !== seen;
  }

  #mayLookAgain(): boolean {
    const now = this.#options.now();
    if (now < this.#mayLookAgainAt || this.#waitMs() > 0) return false;
    this.#mayLookAgainAt = now + lookAgainMs;
    return true;
  }

  /** How long the provider is still left alone after a failed read. */
  #waitMs(): number {
    return this.#failures ? Math.max(0, this.#failures.retryAt - this.#options.now()) : 0;
  }

  /** One read at a time, shared by concurrent callers. Never rejects. */
  #read(): Promise<void> {
    this.#reading ??= this.#remote
      .reload()
      .then(
        () => this.#hold(this.#remote.jwks()?.keys ?? []),
        (error) => this.#fail(error),
      )
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  #hold(keys: readonly JWK[]): void {
    const text = JSON.stringify(keys.map((key) => JSON.stringify(key)).sort());
    const version = text === this.#held?.text ? this.version : this.version + 1;
    this.#held = { version, text, confirmedAt: this.#options.now() };
    this.#failures = undefined;
  }

  #fail(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    const { now, random, onFailure } = this.#options;
    const count = (this.#failures?.count ?? 0) + 1;
    const backoffMs = Math.min(firstBackoffMs * 2 ** (count - 1), lastBackoffMs) * (1 + random() / 4);
    this.#failures = { count, retryAt: now() + backoffMs };
    onFailure(error instanceof KeySetUnreadable ? error.reason : 'not-a-key-set');
  }

  async #keepFresh(): Promise<void> {
    const { refreshMs, random } = this.#options;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#read();
      const pauseMs = this.#failures ? this.#waitMs() : refreshMs * (0.9 + random() / 5);
      await sleep(pauseMs, undefined, { ref: false, signal }).catch(() => {});
    }
  }
}

/** Only `alg` and `kid` choose: a key the token brings along (`jwk`, `jku`, `x5u`, `x5c`) is never looked at. */
async function selectKeys(
  set: (header: JWTHeaderParameters) => Promise<CryptoKey>,
  { alg, kid }: JWTHeaderParameters,
): Promise<CryptoKey[]> {
  try {
    return [await set({ alg, ...(kid !== undefined && { kid }) })];
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
