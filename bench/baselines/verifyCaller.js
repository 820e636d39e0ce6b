// Authentication and authorization as jose's documentation shows it: the token is verified on every request.

import { GraphQLError } from 'graphql';
import { createRemoteJWKSet, jwtVerify } from 'jose';

/** Returns a function from an Authorization header to the caller; it rejects with UNAUTHENTICATED. */
export function callerVerifier({ jwksUrl, issuer, audience }) {
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  return async function verifyCaller(authorization = '') {
    try {
      const { payload } = await jwtVerify(authorization.replace(/^Bearer /i, ''), keys, { issuer, audience });
      return new Caller(payload);
    } catch {
      throw new GraphQLError('A valid access token is required.', {
        extensions: { code: 'UNAUTHENTICATED', http: { status: 401 } },
      });
    }
  };
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
