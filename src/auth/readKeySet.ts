import { createPublicKey } from 'node:crypto';
import type { JWK } from 'jose';
import * as z from 'zod';
import { type AgentFor, type ReadFailure, readJson } from './readJson.js';

/** The signature algorithms a token may use (RFC 7518, RFC 8037, RFC 9864): asymmetric only. */
export const signatureAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'] as const;

/** Checking a key takes up to 0.2 ms, and 1 MiB holds thousands: after so many, others get their turn. */
const keysPerTurn = 50;

/**
 * Reads a JSON Web Key Set (RFC 7517 section 5) and returns its usable keys: public keys for signatures of an accepted
 * algorithm, reduced to the members that make the key. Skips unusable keys, as the RFC asks. Returns a fault when no key is
 * usable: an identity provider that signs has one. Never rejects.
 */
export async function readKeySet(
  url: string,
  signal: AbortSignal,
  agent?: AgentFor,
): Promise<readonly JWK[] | ReadFailure> {
  const answer = await readJson(url, 'application/jwk-set+json, application/json', signal, { agent });
  if ('fault' in answer) return answer;
  const set = setSchema.safeParse(answer.json);
  if (!set.success) return notAKeySet;
  const usable: JWK[] = [];
  for (const [index, member] of set.data.keys.entries()) {
    if (index % keysPerTurn === keysPerTurn - 1) await new Promise((resolve) => setImmediate(resolve));
    const key = keySchema.safeParse(member).data;
    if (key !== undefined) usable.push(key);
  }
  return usable.length > 0 ? usable : { fault: 'no-usable-key', cause: 'no key in it can be used' };
}

const notAKeySet: ReadFailure = { fault: 'not-a-key-set', cause: 'the answer is no JSON Web Key Set' };

const setSchema = z.object({ keys: z.array(z.unknown()) });

const text = z.string().optional();

const keySchema = z
  .object({
    kty: z.enum(['RSA', 'EC', 'OKP']),
    crv: z.enum(['P-256', 'P-384', 'Ed25519']).optional(),
    use: z.literal('sig').optional(),
    alg: z.enum(signatureAlgorithms).optional(),
    key_ops: z.array(z.string()).optional(),
    ...{ kid: text, n: text, e: text, x: text, y: text },
    // A published private key or shared secret is compromised: its signatures prove nothing.
    ...{ d: z.undefined().optional(), k: z.undefined().optional() },
  })
  .refine(({ key_ops }) => key_ops?.includes('verify') ?? true)
  // `key_ops` is left out: WebCrypto would refuse a key for any other operation in it.
  .transform(({ key_ops, d, k, ...jwk }) => jwk as JWK)
  .refine(isSound);

/** Whether the key is complete, with its point on the curve or an RSA modulus of safe and affordable size (RFC 7518, 3.3). */
function isSound(jwk: JWK): boolean {
  try {
    const { modulusLength } = createPublicKey({ key: { ...jwk }, format: 'jwk' }).asymmetricKeyDetails ?? {};
    return modulusLength === undefined || (modulusLength >= 2048 && modulusLength <= 8192);
  } catch {
    return false;
  }
}
