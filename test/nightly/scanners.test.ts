import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { composeSupergraph } from '../../examples/supergraph/composeSupergraph.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { places, recovered, typeProbes } from './scanners/clairvoyance.js';
import { arrayBatch, batch, crack, guesses, isAnswered, link } from './scanners/crackql.js';
import { copChecks } from './scanners/graphqlCop.js';
import { consolePaths, consoleWords, cyclesIn, fingerprints, introspections } from './scanners/inql.js';
import { ask, codesIn, send, type Target } from './scanners/Scan.js';
import { startHiveGateway } from './support/hiveGateway.js';
import { routerSecret, type Subgraphs, startSubgraphs } from './support/supergraph.js';

// What public tools send to find a schema or a weakness, sent here to a gateway in production, and to it through a router
// with the configuration of the example. The caller has a good token, with every scope and no taxpayer but one.

const scope = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const sdl = readFileSync('src/schema/schema.graphql', 'utf8');
/** Names of every kind in the schema, and words that a list of common ones has. */
const words = [
  ...['taxpayerToken', 'refreshJob', 'createClientLink', 'refreshJobUpdated', 'token', 'accessToken', 'taxpayerId'],
  ...['maxAgeSeconds', 'metadata', 'Taxpayer', 'TaxpayerToken', 'CreateClientLinkInput', 'include', 'user'],
];
/** Root fields that a caller may ask for in a minute. */
const perMinute = 150;

let subgraphs: Subgraphs;
let gateway: TestGateway;
let open: TestGateway;
let hive: Awaited<ReturnType<typeof startHiveGateway>>;
let own: string;

beforeAll(async () => {
  const production = { NODE_ENV: 'production' };
  subgraphs = await startSubgraphs({ ...production, RATE_LIMIT_PER_MINUTE: `${perMinute}` });
  gateway = subgraphs.gateway;
  own = subgraphs.one.taxpayerId;
  open = await startTestGateway();
  const supergraph = composeSupergraph(subgraphs.addresses);
  hive = await startHiveGateway(supergraph, { ...production, FEDERATION_SHARED_SECRET: routerSecret });
}, 90_000);

afterAll(async () => {
  await hive?.stop();
  await open?.stop();
  await subgraphs?.stop();
});

const origins = { 'the gateway': () => gateway.origin, 'the gateway, through a router': () => hive.origin };

/** The target for a caller of its own, whose limits no other test uses up. */
async function targetOf(origin: string, sub: string): Promise<Target> {
  return { origin, authorization: `Bearer ${await subgraphs.provider.token({ sub, scope, taxpayer_ids: [own] })}` };
}

describe.each(Object.entries(origins))('%s', (name, originOf) => {
  const target = (sub: string) => targetOf(originOf(), `${name} ${sub}`);
  const isDirect = name === 'the gateway';

  test.each(copChecks)('graphql-cop finds nothing: $title', async ({ request, finds }) => {
    const reply = await send(await target('graphql-cop'), request);
    expect({ ...reply, finds: finds(reply) }).toMatchObject({ finds: false });
  });

  describe('CrackQL', () => {
    test.each([1000, 100])('gets no batch of %d aliases answered, nor a list of as many operations', async (size) => {
      gateway.sandbox.control.resetCounters();
      const caller = await target(`batches of ${size}`);
      for (const guess of [...Object.values(guesses), link]) {
        const type = guess === link ? 'mutation' : 'query';
        expect(isAnswered(await ask(caller, batch(type, size, guess)))).toBe(false);
        const list = await send(caller, arrayBatch(size, guess));
        expect([list.status >= 400, list.json.data]).toEqual([true, undefined]);
      }
      expect(gateway.sandbox.control.requests()).toEqual([]);
    });

    test('makes no link by a batch of 60', async () => {
      const reply = await ask(await target('links'), batch('mutation', 60, link));
      expect([reply.json.data, isAnswered(reply)]).toEqual([undefined, false]);
      expect(gateway.sandbox.control.requests('createClientLink')).toEqual([]);
    });

    test.each(Object.entries(guesses))(
      'learns nothing of %s, and has so many guesses a minute',
      async (what, guess) => {
        gateway.sandbox.control.resetCounters();
        const minute = () => Math.floor(Date.now() / 60_000);
        const began = minute();
        // More than 50 jobs at once cost too much for the router.
        const codes = await crack(await target(what), guess, { batches: 7, size: 50 });
        expect(codes['FORBIDDEN']).toBeGreaterThanOrEqual(perMinute);
        expect(codes['FORBIDDEN']).toBeLessThanOrEqual(perMinute * (1 + minute() - began));
        expect(Object.keys(codes).sort()).toEqual(['FORBIDDEN', 'RATE_LIMITED']);
        expect(gateway.sandbox.control.requests()).toEqual([]);
      },
    );
  });

  describe('Clairvoyance and the brute force of InQL', () => {
    test.each(Object.entries(places))('recover no name by %s', async (what, place) => {
      expect(await recovered(await target(what), place, words)).toEqual([]);
    });

    test('recover no type of a field or an argument', async () => {
      const caller = await target('types');
      for (const probe of typeProbes)
        expect(await recovered(caller, probe, ['taxpayerToken', 'refreshJob'])).toEqual([]);
    });
  });

  describe('InQL', () => {
    test('gets no schema by introspection', async () => {
      for (const request of introspections) {
        const reply = await send(await target('introspection'), request);
        expect(reply.json).toMatchObject({ errors: [{}] });
        expect(reply.json.data ?? null).toBeNull();
      }
    });

    test('finds no console', async () => {
      for (const path of consolePaths) {
        const request = { method: 'GET', path, headers: { accept: 'text/html,*/*' } };
        const { text } = await send(await target('consoles'), request);
        expect({ path, found: consoleWords.filter((word) => text.includes(word)) }).toEqual({ path, found: [] });
      }
    });

    test('cannot tell the engine', async () => {
      const caller = await target('fingerprints');
      const found: string[] = [];
      for (const [engine, query, signs] of fingerprints) {
        const { text } = await ask(caller, query);
        if (signs.test(text)) found.push(engine);
      }
      expect(found).toEqual([]);
    });

    test('gets no cycle of the schema answered beyond the depth, and one call for what is within', async () => {
      const caller = await target('cycles');
      const cycles = cyclesIn(sdl).map((cycle) => cycle.join(' → '));
      expect(cycles).toEqual(expect.arrayContaining(['token → taxpayer', 'refreshJob → taxpayer']));
      const around = (levels: number) => {
        const path = Array.from({ length: levels }, (_, level) => ['token', 'taxpayer'][level % 2]);
        return `{ taxpayer(id: "${own}") { ${path.join(' { ')} { __typename }${' }'.repeat(levels)} }`;
      };
      gateway.sandbox.control.resetCounters();
      expect((await ask(caller, around(100))).json.data ?? null).toBeNull();
      expect(gateway.sandbox.control.requests()).toEqual([]);
      expect((await ask(caller, around(10))).json.errors).toBeUndefined();
      expect(gateway.sandbox.control.tokenCalls(own)).toBeLessThanOrEqual(1);
    });
  });

  test('tells no scanner more than the codes of its own refusals', async () => {
    const reply = await ask(await target('codes'), '{ nonsense }');
    if (isDirect) expect(codesIn(reply)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect(reply.text).not.toMatch(/nonsense|127\.0\.0\.1|node_modules/);
  });
});

describe('these scanners do find what an open gateway shows', () => {
  const target = () => ({ origin: open.origin, authorization: 'none' });

  test('graphql-cop', async () => {
    const found: string[] = [];
    for (const { title, request, finds } of copChecks) if (finds(await send(target(), request))) found.push(title);
    expect(found).toEqual(['Field Suggestions', 'Introspection']);
  });

  test.each(Object.entries(places))('Clairvoyance and InQL, by %s', async (_, place) => {
    expect(await recovered(target(), place, words)).not.toEqual([]);
  });

  test('InQL', async () => {
    for (const request of introspections) expect((await send(target(), request)).json.data).toHaveProperty('__schema');
    const request = { method: 'GET', path: '/graphiql', headers: { accept: 'text/html' } };
    expect((await send(target(), request)).text).toContain('GraphiQL');
    const found = [];
    for (const [engine, query, signs] of fingerprints)
      if (signs.test((await ask(target(), query)).text)) found.push(engine);
    expect(found).toContain('apollo');
  });
});
