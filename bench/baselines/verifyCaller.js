// Authentication and authorization as jose's documentation shows it: the token is verified on every request.

import { GraphQLError } from 'graphql';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { AUTH_JWKS_URL, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = process.env;
const keys = createRemoteJWKSet(new URL(AUTH_JWKS_URL));

/** The caller of an Authorization header; rejects with UNAUTHENTICATED. */
export async function verifyCaller(authorization = '') {
  try {
    const { payload } = await jwtVerify(authorization.replace(/^Bearer /i, ''), keys, { issuer, audience });
    return new Caller(payload);
  } catch {
    throw new GraphQLError('A valid access token is required.', { extensions: { code: 'UNAUTHENTICATED' } });
  }
}

class Caller {
  #scopes;
  #taxpayers;

  constructor({ scope = '', taxpayer_ids: taxpayers = [] }) {
    this.#scopes = new Set(scope.split(' '));
    this.#taxpayers = new Set(taxpayers);
  }

  /** Throws FORBIDDEN unless the caller has the scope and, where one is named, may see the taxpayer. */
  require(scope, taxpayerId) {
    const maySee = taxpayerId === undefined || this.#scopes.has('taxpayers:any') || this.#taxpayers.has(taxpayerId);
    if (this.#scopes.has(scope) && maySee) return;
    throw new GraphQLError('Not allowed.', { extensions: { code: 'FORBIDDEN' } });
  }
}
