import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GraphQLObjectType, GraphQLSchema, GraphQLString, parse } from 'graphql';
import { DocumentMemory } from '../../../src/operations/documents/DocumentMemory.js';
import { PlanCache } from '../../../src/operations/plans/PlanCache.js';
import { environmentFor, postQuery, spawnGateway, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

const query = new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } });
const request = { method: 'POST', documentId: undefined, operationName: undefined, extensions: undefined } as const;

const planCache = (memory: DocumentMemory, schema = new GraphQLSchema({ query }), onBug?: (error: unknown) => void) =>
  new PlanCache(schema, {
    memory: memory.plans,
    maxRepresentations: 1,
    ...(onBug && { onBug }),
  });

let running: TestGateway;

beforeAll(async () => {
  running = await startTestGateway({ CACHE_MAX_ENTRIES: '3', CACHE_URL: 'memory:' }, {}, 'on');
});

afterAll(() => running.stop());

async function reads(tier: 'memory' | 'store'): Promise<number> {
  const text = await (await fetch(`${running.origin}/metrics`)).text();
  const series = text.matchAll(
    new RegExp(`gateway_cache_reads_total\\{kind="token",tier="${tier}"[^}]*\\} (\\d+)`, 'g'),
  );
  return [...series].reduce((sum, [, count]) => sum + Number(count), 0);
}

describe('memory', () => {
  it('holds CACHE_MAX_ENTRIES taxpayers: those not asked for the longest come from the store again', async () => {
    const ids = running.sandbox.control.addTaxpayers(6);
    const ask = (id: string | undefined) =>
      running.query('query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id });
    for (const id of ids) await ask(id);
    expect(await reads('memory')).toBe(0);
    for (const id of ids.slice(-3)) await ask(id);
    expect([await reads('memory'), await reads('store')]).toEqual([3, 0]);
    for (const id of ids.slice(0, 3)) await ask(id);
    expect([await reads('memory'), await reads('store')]).toEqual([3, 3]);
  });

  it('lasts in a small process, however large the records', async () => {
    const sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
    const ids = sandbox.control.addTaxpayers(130, { metadata: { notes: 'x'.repeat(900_000) } });
    const env = { ...environmentFor(sandbox), CACHE_URL: 'memory:', NODE_OPTIONS: '--max-old-space-size=96' };
    const small = await spawnGateway(env);
    try {
      const document = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { status metadata } }';
      for (const id of ids) {
        const { data } = await postQuery(small.origin, document, { id });
        expect(data).toMatchObject({ taxpayerToken: { status: 'CREATED' } });
      }
    } finally {
      await small.kill();
      await sandbox.stop();
    }
  });

  it('notes the last 4,096 documents that were answered, to plan them when they come again', () => {
    const plans = planCache(new DocumentMemory());
    const documents = Array.from({ length: 4097 }, (_, n) => `query Q${n} { a }`);
    for (const document of documents) plans.accept(document);
    expect(plans.find(documents[0] ?? '', undefined, {})).toBeUndefined();
    expect(plans.find(documents[4096] ?? '', undefined, {})).toBeDefined();
  });

  it('holds of documents, plans and requests what came again, as far as its share of the heap goes', () => {
    const memory = new DocumentMemory(2_000_000);
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const textOf = (n: number) => `query Q${n} { ${'a '.repeat(200)} }`;
    const longTextOf = (n: number) => `${textOf(n)} #${'x'.repeat(50_000)}`;
    const nothings = Array.from({ length: 2000 }, () => ({}));
    const plans = planCache(memory);
    const offerAll = () => {
      for (const n of numbers) {
        memory.documents.offer(textOf(n), parse(textOf(n)));
        plans.accept(longTextOf(n));
        plans.find(longTextOf(n), undefined, {});
        memory.requests.offer(textOf(n), { ...request, query: textOf(n), variables: { nothings } });
      }
      return {
        documents: numbers.filter((n) => memory.documents.get(textOf(n))),
        plans: numbers.filter((n) => memory.plans.get(longTextOf(n))),
        requests: numbers.filter((n) => memory.requests.get(textOf(n))),
      };
    };
    expect(offerAll()).toEqual({ documents: [], plans: numbers.slice(-4), requests: [] });
    // 203 tokens of 525 bytes each, 50,000 characters of two, and 2,000 objects of 72
    const kept = { documents: numbers.slice(-4), plans: numbers.slice(-4), requests: numbers.slice(-6) };
    expect(offerAll()).toEqual(kept);
  });
});

it('a plan that fails to be made leaves the document to Apollo, and is told of once', () => {
  const schema = new GraphQLSchema({ query });
  schema.getRootType = () => {
    throw new Error('a mistake of ours');
  };
  const bugs: unknown[] = [];
  const plans = planCache(new DocumentMemory(), schema, (error) => bugs.push(error));
  plans.accept('{ a }');
  expect([plans.find('{ a }', undefined, {}), plans.find('{ a }', undefined, {})]).toEqual([undefined, undefined]);
  expect(bugs).toHaveLength(1);
});
