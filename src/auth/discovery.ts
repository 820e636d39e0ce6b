import type { JWK } from 'jose';
import * as z from 'zod';
import { type AgentFor, type ReadFailure, readJson } from './readJson.js';
import { readKeySet } from './readKeySet.js';

/** Where the keys of an issuer are: at `jwksUrl`, or else where the issuer's metadata says. */
export interface KeyPlace {
  /** The exact `iss` claim. */
  readonly issuer: string;
  readonly jwksUrl: string | undefined;
  /** HTTP agents for reads. Default: Node's own. */
  readonly agentFor?: AgentFor | undefined;
}

/** Reads the keys of an issuer, see {@link readKeySet}. Never rejects. */
export async function readIssuerKeys(
  { issuer, jwksUrl, agentFor }: KeyPlace,
  signal: AbortSignal,
): Promise<readonly JWK[] | ReadFailure> {
  const url = jwksUrl ?? (await discover(issuer, signal, agentFor));
  return typeof url === 'string' ? readKeySet(url, signal, agentFor) : url;
}

/**
 * The URL of an issuer's key set, from the issuer's metadata: at the path of OpenID Connect Discovery 1.0 (section 4), or
 * else at that of RFC 8414 (section 3). Not cached: a provider may move its keys, and they are read rarely.
 */
async function discover(issuer: string, signal: AbortSignal, agentFor?: AgentFor): Promise<string | ReadFailure> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const openId = await read(`${origin}${path}/.well-known/openid-configuration`, issuer, signal, agentFor);
  if (typeof openId === 'string' || openId.fault !== 'status') return openId;
  return read(`${origin}/.well-known/oauth-authorization-server${path}`, issuer, signal, agentFor);
}

const metadataSchema = z.object({
  issuer: z.string(),
  jwks_uri: z.string().regex(/^https?:\/\/[\x21-\x7e]+$/),
});

async function read(
  url: string,
  issuer: string,
  signal: AbortSignal,
  agent: AgentFor | undefined,
): Promise<string | ReadFailure> {
  const answer = await readJson(url, 'application/json', signal, { agent });
  if ('fault' in answer) return { ...answer, cause: `metadata: ${answer.cause}` };
  const metadata = metadataSchema.safeParse(answer.json).data;
  if (!metadata || !URL.canParse(metadata.jwks_uri)) {
    return { fault: 'not-metadata', cause: 'the answer is no metadata that names a key set (jwks_uri)' };
  }
  // Otherwise whoever could publish metadata of another issuer would choose the keys of this one.
  if (metadata.issuer !== issuer) {
    const named = /^https?:\/\/[\x21-\x7e]{1,200}$/.test(metadata.issuer) ? metadata.issuer : 'another issuer';
    return { fault: 'other-issuer', cause: `the metadata names ${named}, AUTH_ISSUER must be exactly that` };
  }
  if (new URL(issuer).protocol === 'https:' && new URL(metadata.jwks_uri).protocol !== 'https:') {
    return { fault: 'not-metadata', cause: 'jwks_uri is not https:, the issuer is' };
  }
  return metadata.jwks_uri;
}
