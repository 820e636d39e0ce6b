import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey, type LocalJWKSet } from 'jose';
import * as z from 'zod';
import type { Config } from '../config/config.js';
import { keySetUrl } from '../config/forms.js';
import { authUnavailable } from '../errors/errors.js';
import type { Agents } from '../network/agents.js';
import { fetchJson, NoAnswer } from '../network/exchange.js';
import { episodes, type Report } from '../observability/episodes.js';
import { isNestedWithin } from '../process/json.js';
import { pause } from '../process/pause.js';
import type { Surroundings } from '../services.js';

/** The keys of an issuer at one moment; gives the one that fits the `alg` and `kid` of a header. */
type KeySet = JWTVerifyGetKey;

/** The keys that may sign for one issuer. */
export type KeySource = Pick<IssuerKeys, 'current' | 'usable'>;

/** An exact `iss` claim, and where the keys of the issuer are: at `jwksUrl`, or else where the issuer's metadata says. */
type Issuer = Config['issuers'][number];

/** Longest pause between two reads, in milliseconds. */
const refreshMs = 600_000;
/** Time for a read, in milliseconds. */
const deadlineMs = 5_000;
/** Shortest pause after a read that succeeded, in milliseconds, so that made-up tokens cannot hammer the provider. */
const lookAgainMs = 10_000;
/** Pause after a read that failed, in milliseconds, before it is tried again: as long as AUTH_UNAVAILABLE asks its caller to wait. */
const retryMs = 1_000;

/**
 * The published keys of one identity provider (RFC 7517). jose chooses from the set; this class decides when to read it: in
 * the background, and when no key fits. Keys serve through an outage of the provider, for a bounded time.
 */
export class IssuerKeys {
  #set: LocalJWKSet | undefined;
  /** When the provider last confirmed the keys or, before that, this process began to read them. */
  #confirmedAt = Date.now();
  #failure: NoAnswer | undefined;
  /** The latest read, until the pause after it is over. */
  #read: Promise<void> | undefined;
  /** How long keys are used after the provider last confirmed them: a withdrawn key must not stay valid for ever. */
  readonly #maxAgeMs: number;
  readonly #report: Report;

  constructor(
    private readonly issuer: Issuer,
    private readonly surroundings: Surroundings,
  ) {
    const { config, log } = surroundings;
    this.#maxAgeMs = 1000 * config.AUTH_KEYS_MAX_AGE_SECONDS;
    this.#report = episodes({
      log,
      about: { issuer: issuer.issuer },
      begins: 'a key set cannot be read',
      ends: 'the key set can be read again',
      quietMs: 0,
    });
  }

  /** A new object whenever the keys change; undefined when they were not confirmed recently enough to be used. */
  get current(): KeySet | undefined {
    return this.ageMs < this.#maxAgeMs ? this.#set : undefined;
  }

  /** Milliseconds since the provider last confirmed the keys or, before that, since the start. */
  get ageMs(): number {
    return Date.now() - this.#confirmedAt;
  }

  /** Reads the keys at once, and again at intervals until stopped. */
  async start(): Promise<void> {
    const { stopped } = this.surroundings;
    while (!stopped.aborted) {
      await this.#look();
      await pause(Math.min(refreshMs, this.#maxAgeMs / 2), stopped);
    }
  }

  /**
   * Returns `current`. Reads the keys first if there is none or, unless they were read a moment ago, if they are those that did
   * not sign a token. @throws GatewayError AUTH_UNAVAILABLE if they cannot be read: such a token may be signed with a new key
   */
  async usable(unfit?: KeySet): Promise<KeySet> {
    if (this.current === unfit) await this.#look();
    const { current } = this;
    if (current !== undefined && (current !== unfit || this.#failure === undefined)) return current;
    const message = 'The keys of the identity provider cannot be read at the moment';
    throw authUnavailable(message, `key set: ${this.#failure?.reason ?? 'too old'}`);
  }

  /** Reads the keys, or joins the latest read until the pause after it is over. */
  #look(): Promise<void> {
    this.#read ??= this.#readOnce();
    return this.#read;
  }

  async #readOnce(): Promise<void> {
    const { agents, stopped } = this.surroundings;
    // The first read looks for no newer key, so the first such look need not wait.
    let pauseMs = this.#set ? lookAgainMs : 0;
    try {
      const keys = await readIssuerKeys(this.issuer, agents.others);
      if (JSON.stringify(keys) !== JSON.stringify(this.#set?.jwks())) this.#set = createLocalJWKSet(keys);
      this.#confirmedAt = Date.now();
      this.#failure = undefined;
    } catch (error) {
      this.#failure = error as NoAnswer;
      pauseMs = retryMs;
    }
    if (stopped.aborted) return;
    this.#report(this.#failure?.kind, this.#failure?.reason);
    void pause(pauseMs, stopped).then(() => {
      this.#read = undefined;
      if (this.#failure && !stopped.aborted) void this.#look(); // whoever looked: `start` may be in a long pause
    });
  }
}

/** Deepest nesting of a key set, in levels: `JSON.stringify` overflows the stack at some thousand. */
const maxKeyDepth = 20;

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: keySetUrl });
const keySetSchema = z.object({ keys: z.array(z.looseObject({})).min(1) });

/** Reads the key set of an issuer. @throws NoAnswer */
export async function readIssuerKeys({ issuer, jwksUrl }: Issuer, agents: Agents): Promise<JSONWebKeySet> {
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const endsAt = performance.now() + deadlineMs;
  const get: Get = (url) => fetchJson(agents, url, endsAt - performance.now(), { headers });
  const read = keySetSchema.safeParse(await get(jwksUrl ?? (await discover(issuer, get))));
  if (!read.success || !isNestedWithin(read.data, maxKeyDepth)) {
    throw new NoAnswer('invalid', 'the answer is no JSON Web Key Set with a key');
  }
  return read.data;
}

type Get = (url: string) => Promise<unknown>;

/**
 * The URL of an issuer's key set, from the issuer's metadata: at the path of OpenID Connect Discovery 1.0 (section 4), or
 * else at that of RFC 8414 (section 3). Not cached: a provider may move its keys, and they are read rarely.
 */
async function discover(issuer: string, get: Get): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const metadata = await get(`${origin}${path}/.well-known/openid-configuration`)
    .catch((error: NoAnswer) => {
      // The other path is tried only where the server has answered this one with a status such as 404.
      if ((error.status ?? 0) < 400) throw error;
      return get(`${origin}/.well-known/oauth-authorization-server${path}`);
    })
    .catch(({ kind, reason }: NoAnswer) => {
      throw new NoAnswer(kind, `metadata at /.well-known/openid-configuration: ${reason}`);
    });
  const { data } = metadataSchema.safeParse(metadata);
  if (!data) throw new NoAnswer('invalid', 'the answer is no metadata that names a key set (jwks_uri)');
  // Otherwise whoever could publish metadata of another issuer would choose the keys of this one.
  if (data.issuer !== issuer) {
    const named = /^https?:\/\/[\x21-\x7e]{1,200}$/.test(data.issuer) ? data.issuer : 'another issuer';
    throw new NoAnswer('invalid', `the metadata names ${named}, AUTH_ISSUER must be exactly that`);
  }
  if (issuer.startsWith('https:') && !data.jwks_uri.startsWith('https:')) {
    throw new NoAnswer('invalid', 'jwks_uri is not https:, the issuer is');
  }
  return data.jwks_uri;
}
