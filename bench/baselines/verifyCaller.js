// Authentication and authorization as jose's documentation shows it: the token is verified on every request.

import { GraphQLError } from 'graphql';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { AUTH_JWKS_URL, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = process.env;
const keys = createRemoteJWKSet(new URL(AUTH_JWKS_URL));

/** The caller of an Authorization header. `require(scope, taxpayerId)` throws unless they have the scope and may see the taxpayer. */
export async function verifyCaller(authorization = '') {
  const { payload } = await jwtVerify(authorization.replace(/^Bearer /i, ''), keys, { issuer, audience });
  const scopes = new Set(payload.scope.split(' '));
  const taxpayers = new Set(payload.taxpayer_ids);
  return {
    require(scope, taxpayerId) {
      if (scopes.has(scope) && (scopes.has('taxpayers:any') || taxpayers.has(taxpayerId))) return;
      throw new GraphQLError('Not allowed.', { extensions: { code: 'FORBIDDEN' } });
    },
  };
}
