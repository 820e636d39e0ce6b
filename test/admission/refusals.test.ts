import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RefusalPace } from '../../src/admission/RefusalPace.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { rawSocket } from '../support/rawSocket.js';

describe('A flood of refusals', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    gateway = await startTestGateway(provider.env);
  });

  afterAll(async () => {
    await gateway.stop();
    await provider.stop();
  });

  it('is answered a few hundred a second, while others are answered at once', async () => {
    const authorization = await provider.watcherOf([]);
    const ask = (headers: Record<string, string>) => gateway.query('{ __typename }', {}, headers);
    await ask({ authorization });
    const startedAt = performance.now();
    const answered: string[] = [];
    const refused = Array.from({ length: 500 }, async () => {
      const { status, errors } = await ask({});
      answered.push('refused');
      return [status, errors?.[0]?.extensions.code];
    });
    const others = Array.from({ length: 5 }, async () => {
      const { status } = await ask({ authorization });
      answered.push('served');
      return status;
    });
    expect(new Set(await Promise.all(others))).toEqual(new Set([200]));
    expect(new Set((await Promise.all(refused)).map(String))).toEqual(new Set(['401,UNAUTHENTICATED']));
    expect(performance.now() - startedAt).toBeGreaterThan(700);
    expect(answered.lastIndexOf('served')).toBeLessThan(answered.lastIndexOf('refused') - 50);
  });

  it('has connections ended when more of one address wait than a second answers, while others are answered', async () => {
    const authorization = await provider.watcherOf([]);
    const refused = Array.from({ length: 1000 }, () =>
      gateway.query('{ __typename }').then(
        () => true,
        () => false,
      ),
    );
    expect((await gateway.query('{ __typename }', {}, { authorization })).status).toBe(200);
    const outcomes = await Promise.all(refused);
    expect(outcomes.filter(Boolean).length).toBeGreaterThanOrEqual(500);
    expect(outcomes).toContain(false);
  });

  it('on a socket is answered no faster, and the socket works afterwards', async () => {
    const socket = rawSocket(gateway.origin);
    await socket.init({ authorization: await provider.watcherOf([]) });
    const startedAt = performance.now();
    const send = (id: string, query: string) => socket.send({ id, type: 'subscribe', payload: { query } });
    for (let n = 0; n < 600; n += 1) {
      send(`${n}`, '{ nothing }');
      if (n % 50 === 49) await socket.message(({ id }) => id === `${n}`);
    }
    send('last', '{ __typename }');
    await socket.message(({ id, type }) => id === 'last' && type === 'complete');
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect(socket.received.filter(({ type }) => type === 'error')).toHaveLength(600);
    socket.end();
  });
});

describe('The turn of a refusal', () => {
  it('comes at once for the first hundred of a caller, two milliseconds after the one before for a second, then not', () => {
    const pace = new RefusalPace(() => 0);
    const waits = Array.from({ length: 700 }, () => pace.take('ada'));
    expect(waits.slice(0, 101)).toEqual(Array(101).fill(0));
    expect(waits.slice(101, 601)).toEqual(Array.from({ length: 500 }, (_, n) => 2 * (n + 1)));
    expect(new Set(waits.slice(601))).toEqual(new Set([Number.POSITIVE_INFINITY]));
    expect(pace.take('bob')).toBe(0);
  });

  it('comes at once again when there was time for those before', () => {
    let now = 0;
    const pace = new RefusalPace(() => now);
    for (let n = 0; n < 300; n += 1) pace.take('ada');
    expect(pace.take('ada')).toBeGreaterThan(0);
    now = 600;
    expect(pace.take('ada')).toBe(0);
  });
});
