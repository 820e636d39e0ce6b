/**
 * The rooms of src that are mutated, and the tests that have to notice: those that run in seconds. Tests that start
 * processes run the built gateway, in which there is no mutant; those that wait for leases to run out take too long.
 */
export const rooms = {
  cache: ['forgets', 'heldBytes', 'oneKeyStore', 'sealedStore', 'sealing', 'storedEntries', 'storedValues'],
  upstream: [
    'callGate',
    'connections',
    'credentials',
    'endpointBreaker',
    'forbiddenRequests',
    'resilientFetch',
    'retryAfter',
    'tokenBudget',
  ],
  datasources: [
    'clocks',
    'contract',
    'freshness',
    'idempotentLinks',
    'learnedFreshness',
    'refreshJobs',
    'rotatedTokens',
    'taxpayerService',
    'tokenBroker',
    'tokenPolicies',
    'watcher',
    'wire',
  ],
  auth: [
    'auth',
    'authMemory',
    'authorization',
    'boundTokens',
    'callerRights',
    'decisionPoint',
    'developerMode',
    'discovery',
    'keySet',
    'tokenKind',
  ],
};
