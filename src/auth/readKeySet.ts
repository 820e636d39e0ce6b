import { createPublicKey } from 'node:crypto';
import type { JWK } from 'jose';
import fetch, { FetchError } from 'node-fetch';
import { z } from 'zod';

/** The signature algorithms a token may use (RFC 7518, RFC 8037, RFC 9864): asymmetric only, whatever its header says. */
export const signatureAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'] as const;

export type ReadFailure =
  | 'timeout'
  | 'network'
  | 'redirect'
  | 'status'
  | 'too-large'
  | 'not-a-key-set'
  | 'no-usable-key';

/** Why a key set could not be read. Holds nothing of the answer. */
export class KeySetUnreadable extends Error {
  readonly reason: ReadFailure;

  constructor(reason: ReadFailure) {
    super(`The key set could not be read: ${reason}.`);
    this.name = 'KeySetUnreadable';
    this.reason = reason;
  }
}

export interface ReadKeySetOptions {
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}

const maxBodyBytes = 1024 * 1024;
const maxKeys = 200;

/**
 * Reads a JSON Web Key Set (RFC 7517 section 5) once and returns its usable keys: public, for signatures, of an accepted
 * algorithm, and nothing but the members that make the key. Other members of the set are passed over, as the RFC asks.
 * Throws {@link KeySetUnreadable}, also for a set without one usable key: an identity provider that signs has a key, so
 * an empty set is its fault and no reason to forget the keys that are held.
 */
export async function readKeySet(url: string, options: ReadKeySetOptions): Promise<JWK[]> {
  const keys = usableKeys(parseJson(await download(url, options)));
  if (keys.length === 0) throw new KeySetUnreadable('no-usable-key');
  return keys;
}

async function download(url: string, options: ReadKeySetOptions): Promise<string> {
  try {
    const response = await options.fetch(url, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'error',
      size: maxBodyBytes,
      signal: options.signal,
    });
    if (response.status !== 200) throw new KeySetUnreadable('status');
    return await response.text();
  } catch (error) {
    if (error instanceof KeySetUnreadable) throw error;
    throw new KeySetUnreadable(downloadFailure(error, options.signal));
  }
}

function downloadFailure(error: unknown, signal: AbortSignal): ReadFailure {
  if (signal.aborted) return 'timeout';
  if (error instanceof FetchError && error.type === 'no-redirect') return 'redirect';
  if (error instanceof FetchError && error.type === 'max-size') return 'too-large';
  return 'network';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KeySetUnreadable('not-a-key-set');
  }
}

const setSchema = z.object({ keys: z.array(z.unknown()) });

const purpose = {
  kid: z.string().optional(),
  use: z.literal('sig').optional(),
  alg: z.enum(signatureAlgorithms).optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  // A set that publishes a private key or a shared secret has lost it: what it signs proves nothing.
  d: z.undefined().optional(),
  k: z.undefined().optional(),
};

const keySchema = z.discriminatedUnion('kty', [
  z.object({ ...purpose, kty: z.literal('RSA'), n: z.string(), e: z.string() }),
  z.object({ ...purpose, kty: z.literal('EC'), crv: z.enum(['P-256', 'P-384']), x: z.string(), y: z.string() }),
  z.object({ ...purpose, kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
]);

function usableKeys(set: unknown): JWK[] {
  const parsed = setSchema.safeParse(set);
  if (!parsed.success) throw new KeySetUnreadable('not-a-key-set');
  return parsed.data.keys.slice(0, maxKeys).flatMap((member) => {
    const key = keySchema.safeParse(member);
    if (!key.success) return [];
    // key_ops has been checked; passed on, WebCrypto would refuse the key for any other word in it.
    const members = Object.entries(key.data).filter(([name, value]) => name !== 'key_ops' && value !== undefined);
    const jwk: JWK = { kty: key.data.kty, ...Object.fromEntries(members) };
    return isSoundKey(jwk) ? [jwk] : [];
  });
}

/** The key decodes, its point is on the curve, and an RSA modulus has a safe and affordable size (RFC 7518 section 3.3). */
function isSoundKey(jwk: JWK): boolean {
  try {
    const { modulusLength } = createPublicKey({ key: { ...jwk }, format: 'jwk' }).asymmetricKeyDetails ?? {};
    return modulusLength === undefined || (modulusLength >= 2048 && modulusLength <= 8192);
  } catch {
    return false;
  }
}
