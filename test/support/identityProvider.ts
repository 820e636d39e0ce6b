import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { serve } from './serve.js';

/** How the key set endpoint answers: `hold` waits for `release`, `drop` cuts the connection. */
type ProviderBehaviour = 'ok' | 'hold' | 'drop' | 'error' | 'hang-in-body';

interface IdentityProviderOptions {
  /** The `iss` of its tokens. Default: its own address. */
  readonly issuer?: string;
  /** The algorithms; one signing key is made for each. Default: RS256. */
  readonly keys?: readonly string[];
}

export interface TokenOptions {
  /** Written into the header and used to sign. Default: the newest key's. `none` leaves the signature empty. */
  readonly alg?: string;
  /** Replaces the key's id in the header; null leaves it out. */
  readonly kid?: unknown;
  /** The key to sign with, instead of a published one; for HS256 a text or bytes. */
  readonly key?: KeyObject | string | Uint8Array;
  /** Header members to add or replace. */
  readonly header?: Readonly<Record<string, unknown>>;
  /** Lifetime in seconds. Default: 300. */
  readonly expiresIn?: number;
  /** The payload as text, instead of claims. */
  readonly payload?: string;
}

interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;

/**
 * An identity provider on loopback that publishes a key set and signs any token a test asks for, hostile ones included.
 * In claims, `undefined` removes a usual claim and `Infinity` is written as the JSON number 1e999.
 */
export async function startIdentityProvider(options: IdentityProviderOptions = {}) {
  let keys = (options.keys ?? ['RS256']).map(makeKey);
  let behaviour: ProviderBehaviour = 'ok';
  let published: unknown;
  const keySet = () => published ?? { keys: keys.map(publicJwk) };
  const counts = { jwks: 0 };
  const held: ServerResponse[] = [];
  const server = createServer((_, response) => {
    counts.jwks += 1;
    if (behaviour === 'hold') held.push(response);
    else answer(response, behaviour, keySet);
  });
  const address = `${await serve(server)}/`;
  const issuer = options.issuer ?? address;
  const audience = 'taxpayer-gateway';

  return {
    issuer,
    audience,
    jwksUrl: `${address}jwks.json`,
    /** Requests for the key set so far. */
    counts,

    async token(claims: Readonly<Record<string, unknown>> = {}, how: TokenOptions = {}) {
      const key = newest(keys, how.alg);
      const alg = how.alg ?? key.alg;
      const now = Math.floor(Date.now() / 1000);
      const payload =
        how.payload ??
        json({ iss: issuer, aud: audience, sub: 'ada', iat: now, exp: now + (how.expiresIn ?? 300), ...claims });
      const kid = how.kid === undefined ? key.kid : (how.kid ?? undefined);
      const signed = [json({ alg, kid, typ: 'JWT', ...how.header }), payload].map(base64url).join('.');
      return `${signed}.${signatureOf(signed, alg, how.key ?? (alg.startsWith('HS') ? '' : key.privateKey))}`;
    },

    /** Replaces every key: tokens signed before are invalid once a verifier reads the new set. */
    rotateKey(alg: string) {
      keys = [makeKey(alg)];
    },

    /** The public part of the newest key, as PEM. */
    publicPem() {
      return newest(keys).publicKey.export({ type: 'spki', format: 'pem' }).toString();
    },

    /** Publishes `set` in place of its own keys; undefined publishes these again. */
    publish(set: unknown) {
      published = set;
    },

    behave(as: ProviderBehaviour) {
      behaviour = as;
    },

    /** Answers the requests held so far, and all later ones. */
    release() {
      behaviour = 'ok';
      for (const response of held.splice(0)) answer(response, 'ok', keySet);
    },
  };
}

/** A private key whose public part is published nowhere. */
export function strangeKey(alg = 'RS256'): KeyObject {
  return makeKey(alg).privateKey;
}

export function publicJwk({ kid, alg, publicKey }: SigningKey): Record<string, unknown> {
  return { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
}

let made = 0;

export function makeKey(alg: string): SigningKey {
  made += 1;
  return { kid: `key-${made}`, alg, ...keyPair(alg) };
}

function keyPair(alg: string): { privateKey: KeyObject; publicKey: KeyObject } {
  if (alg === 'EdDSA' || alg === 'Ed25519') return generateKeyPairSync('ed25519');
  if (alg.startsWith('ES')) return generateKeyPairSync('ec', { namedCurve: `P-${alg.slice(2).replace('512', '521')}` });
  return generateKeyPairSync('rsa', { modulusLength: 2048 });
}

/** The newest key of the algorithm. Hostile tokens may name one without a key: then the newest key of all. */
function newest(keys: readonly SigningKey[], alg?: string): SigningKey {
  const key = keys.findLast((candidate) => candidate.alg === alg) ?? keys.at(-1);
  if (!key) throw new Error('This identity provider has no key.');
  return key;
}

function signatureOf(signed: string, alg: string, key: KeyObject | string | Uint8Array) {
  if (alg === 'none') return '';
  const data = Buffer.from(signed);
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith('HS')) return createHmac(hash, key).update(data).digest('base64url');
  if (alg.startsWith('Ed')) return sign(null, data, key as KeyObject).toString('base64url');
  const padding = alg.startsWith('PS') ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
  const pss = { padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const how = alg.startsWith('ES') ? ({ dsaEncoding: 'ieee-p1363' } as const) : pss;
  return sign(hash, data, { key: key as KeyObject, ...how }).toString('base64url');
}

function json(value: unknown) {
  const text = JSON.stringify(value, (_, member) => (member === Number.POSITIVE_INFINITY ? '@infinity@' : member));
  return text.replaceAll('"@infinity@"', '1e999');
}

function base64url(text: string) {
  return Buffer.from(text).toString('base64url');
}

function answer(response: ServerResponse, behaviour: Exclude<ProviderBehaviour, 'hold'>, keySet: () => unknown) {
  switch (behaviour) {
    case 'drop':
      response.socket?.destroy();
      return;
    case 'hang-in-body':
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"keys":[');
      return;
    case 'error':
      response.writeHead(503).end('x'.repeat(200_000));
      return;
    case 'ok':
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(keySet()));
  }
}
