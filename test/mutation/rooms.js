/**
 * The rooms of src that are mutated, and the tests that have to notice: those that run in seconds, those that compute least
 * first, because the first failure is enough. Tests that start processes run the built gateway, in which there is no mutant;
 * those that wait for leases to run out take too long.
 */
export const rooms = {
  cache: [
    'heldBytes',
    'oneKeyStore',
    'storedValues',
    'marks',
    'subjectEntries',
    'leasedCache',
    'forgetsList',
    'forgets',
    'sealing',
    'sealedStore',
  ],
  upstream: [
    'serviceUrl',
    'retryAfter',
    'callGate',
    'endpointBreaker',
    'forbiddenRequests',
    'connections',
    'resilientFetch',
    'tokenBudget',
  ],
  datasources: [
    'freshness',
    'watcher',
    'wire',
    'taxpayerService',
    'tokenBroker',
    'refreshJobs',
    'clocks',
    'learnedFreshness',
    'tokenPolicies',
    'idempotentLinks',
    'rotatedTokens',
    'contract',
  ],
  auth: [
    'tokenKind',
    'developerMode',
    'discovery',
    'callerRights',
    'auth',
    'identify',
    'decisions',
    'keySet',
    'boundTokens',
    'decisionPoint',
    'authorization',
    'authMemory',
  ],
};

/** The rooms whose mutants meet the simulated fleet first. In the others it notices little, and takes longer than the tests. */
export const simulated = ['cache', 'datasources'];
