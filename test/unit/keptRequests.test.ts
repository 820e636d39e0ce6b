import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { anyone } from '../../src/auth/caller.js';
import { loadConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/observability/log.js';
import { requestOf } from '../../src/operations/GraphQLRequest.js';
import type { OperationHooks } from '../../src/operations/observeOperations.js';
import { WorkFinder } from '../../src/operations/WorkFinder.js';
import { resolvers } from '../../src/resolvers/index.js';
import { buildSchema } from '../../src/schema/buildSchema.js';
import { defaultProviders } from '../../src/schema/Provider.js';

const createLink = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';
const readRecord = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';

const facts = {
  ...{ caller: anyone, requestId: '1', startedAt: 0, signal: new AbortController().signal },
  ...{ fromRouter: undefined, remoteAddress: undefined, peer: undefined },
};

it.each([
  ['is kept for a query', readRecord, { id: '1' }, true],
  // Its input may hold social security numbers.
  [
    'is not kept for a mutation',
    createLink,
    { input: { settings: { prefillData: { personalInfo: { ssn: '917-23-4461' } } } } },
    false,
  ],
])('a request that comes again %s', (_, query, variables, isKept) => {
  const works = new WorkFinder({
    schema: buildSchema({ resolvers, providers: defaultProviders }),
    limits: loadConfig({}).limits,
    introspection: true,
    trustedDocuments: undefined,
    planMode: 'on',
    hooks: { onBug: () => {} } as Partial<OperationHooks> as OperationHooks,
    log: createLogger('silent', { write: () => {} }),
    noteWork: () => {},
  });
  works.memory.plans.see(query); // as after an answer of Apollo
  const body = JSON.stringify({ query, variables });
  for (let time = 0; time < 3; time += 1) {
    const request = { ...requestOf('POST', { query, variables }, 10), body };
    expect(works.find(request, facts, 'http').by).toBe('plan');
  }
  expect(works.memory.requests.get(body) !== undefined).toBe(isKept);
});
