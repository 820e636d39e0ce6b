/** What `npm run dev:token` writes into a token, and signs it with. */
export const developer = {
  algorithm: 'HS256',
  issuer: 'urn:taxpayer-gateway:developer',
  audience: 'taxpayer-gateway',
  /** Public, which gives nobody a right: in developer mode a caller without a token may do everything. */
  key: new TextEncoder().encode('the key of the developer mode, known to all'),
};
const keySet = async () => developer.key;
const keys = { current: keySet, usable: async () => keySet };

/** Verifies tokens of `npm run dev:token`, which let the local developer do no more than they say. For AUTH_MODE=developer. */
export const developerPolicy = {
  algorithms: [developer.algorithm],
  keySets: new Map([[developer.issuer, keys]]),
  AUTH_AUDIENCE: [developer.audience],
  AUTH_TOKEN_TYPES: ['jwt'],
  AUTH_SCOPES_CLAIM: ['scope'],
  AUTH_SCOPES_MAP: new Map(),
  AUTH_TAXPAYERS_CLAIM: 'taxpayer_ids',
};
