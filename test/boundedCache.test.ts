import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { PlanCache } from '../src/edge/plans/PlanCache.js';
import { startTestGateway, type TestGateway } from './support/gateway.js';

let running: TestGateway;

beforeAll(async () => {
  running = await startTestGateway({ CACHE_MAX_ENTRIES: '3', CACHE_URL: 'memory:' });
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

  it('holds a thousand documents, or a million characters of them, for plans', () => {
    const query = new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } });
    const plans = new PlanCache(new GraphQLSchema({ query }));
    const documents = Array.from({ length: 1001 }, (_, n) => `query Q${n} { a }`);
    for (const document of documents) plans.accept(document);
    expect(plans.find(documents[0] ?? '', undefined)).toBeUndefined();
    expect(plans.find(documents[1000] ?? '', undefined)).toBeDefined();
    const large = Array.from({ length: 3 }, (_, n) => `query L${n} { a } #${'x'.repeat(400_000)}`);
    for (const document of large) plans.accept(document);
    expect(plans.find(large[0] ?? '', undefined)).toBeUndefined();
    expect(plans.find(large[2] ?? '', undefined)).toBeDefined();
  });
});

it('a plan that fails to be made leaves the document to Apollo, and is told of once', () => {
  const query = new GraphQLObjectType({ name: 'Query', fields: { a: { type: GraphQLString } } });
  const schema = new GraphQLSchema({ query });
  schema.getRootType = () => {
    throw new Error('a mistake of ours');
  };
  const bugs: unknown[] = [];
  const plans = new PlanCache(schema, { onBug: (error) => bugs.push(error) });
  plans.accept('{ a }');
  expect([plans.find('{ a }', undefined), plans.find('{ a }', undefined)]).toEqual([undefined, undefined]);
  expect(bugs).toHaveLength(1);
});
