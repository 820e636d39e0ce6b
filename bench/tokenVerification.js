// The CPU cost of verifying a new token, beside jose alone, in this process.

import { createLocalJWKSet, exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT } from 'jose';
import { verifyToken } from '../src/auth/verifyToken.ts';
import { costsInTurn, costsTable, ratioOf } from './inTurn.js';

const tokens = 3000;
const [issuer, audience] = ['https://id.example', 'taxpayer-gateway'];
const joseAlone = 'jwtVerify of jose';
const ours = 'who the caller is and what they may do (ours)';

/** Prints and returns the tables. Puts the ratios into `results`, for the promises. */
export async function tokenVerification(results) {
  let text = '';
  for (const alg of ['ES256', 'RS256']) {
    const samples = await costsOf(alg);
    results[`token-${alg}`] = ratioOf(samples, ours, joseAlone);
    const columns = [`a token signed with ${alg}`, 'CPU µs', 'to jose'];
    text += `**Verification of a token, ${alg}** (\`token-verification\`)\n\n${costsTable(columns, samples, joseAlone)}\n`;
  }
  process.stdout.write(`\n${text}`);
  return text;
}

async function costsOf(alg) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg };
  const signed = [];
  for (let n = 0; n < tokens; n += 1) {
    const claims = { scope: 'taxpayers:read refresh-jobs:read', taxpayer_ids: [`taxpayer-${n}`] };
    const token = new SignJWT(claims).setProtectedHeader({ alg, typ: 'at+jwt', kid: 'one' }).setSubject(`caller-${n}`);
    signed.push(await token.setIssuer(issuer).setAudience(audience).setExpirationTime('1h').sign(privateKey));
  }
  const keySet = createLocalJWKSet({ keys: [jwk] });
  const keys = [await importJWK(jwk, alg)];
  const source = { version: 1, usableForMs: 3_600_000, keysFor: async () => ({ keys, version: 1 }) };
  const policy = {
    issuers: new Map([[issuer, { keys: source, audience: [audience] }]]),
    rights: { scopesClaims: ['scope'], scopesMap: new Map(), taxpayersClaim: 'taxpayer_ids' },
    tokenTypes: ['at+jwt'],
  };
  const ways = {
    [joseAlone]: (n) => jwtVerify(signed[n], keySet, { issuer, audience }),
    [ours]: (n) => verifyToken(signed[n], policy),
  };
  return costsInTurn(ways, tokens);
}
