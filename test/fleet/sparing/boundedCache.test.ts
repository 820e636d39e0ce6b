import { describe, expect, it } from '@jest/globals';
import { environmentFor, postQuery, spawnGateway, startTestGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

const running = await startTestGateway({}, {}, { bounds: { cache: { maxEntries: 3 } } });

async function reads(tier: 'memory' | 'store'): Promise<number> {
  const text = await (await fetch(`${running.origin}/metrics`)).text();
  const series = text.matchAll(
    new RegExp(`gateway_cache_reads_total\\{kind="token",tier="${tier}"[^}]*\\} (\\d+)`, 'g'),
  );
  return [...series].reduce((sum, [, count]) => sum + Number(count), 0);
}

describe('memory', () => {
  it('holds a bounded number of taxpayers: those not asked for the longest come from the store again', async () => {
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
    const sandbox = await startSandbox();
    const ids = sandbox.control.addTaxpayers(130, { metadata: { notes: 'x'.repeat(900_000) } });
    const env = { ...environmentFor(sandbox), NODE_OPTIONS: '--max-old-space-size=96' };
    const small = await spawnGateway(env);

    const document = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { status metadata } }';
    for (const id of ids) {
      const { data } = await postQuery(small.origin, document, { id });
      expect(data).toMatchObject({ taxpayerToken: { status: 'CREATED' } });
    }
  });
});
