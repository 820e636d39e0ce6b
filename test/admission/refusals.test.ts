import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RefusalPace } from '../../src/admission/RefusalPace.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

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

  it('is answered in full, a thousand a second, while others are answered at once', async () => {
    const authorization = await provider.watcherOf([]);
    const ask = (headers: Record<string, string>) => gateway.query('{ __typename }', {}, headers);
    await ask({ authorization });
    const startedAt = performance.now();
    const answered: string[] = [];
    const refused = Array.from({ length: 700 }, async () => {
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
    expect(performance.now() - startedAt).toBeGreaterThan(500);
    expect(answered.lastIndexOf('served')).toBeLessThan(answered.lastIndexOf('refused') - 50);
  });
});

describe('The turn of a refusal', () => {
  it('comes at once for the first hundred, and a millisecond after the one before for a thousand more', () => {
    const pace = new RefusalPace(() => 0);
    const turns = Array.from({ length: 1200 }, () => pace.turn() !== undefined);
    const waiting = [turns.indexOf(true), turns.lastIndexOf(true)];
    expect(waiting).toEqual([101, 1100]);
    expect(turns.filter(Boolean)).toHaveLength(1000);
  });

  it('comes at once again when there was time for those before', () => {
    let now = 0;
    const pace = new RefusalPace(() => now);
    for (let n = 0; n < 300; n += 1) void pace.turn();
    expect(pace.turn()).not.toBeUndefined();
    now = 300;
    expect(pace.turn()).toBeUndefined();
  });
});
