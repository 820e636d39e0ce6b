import { environmentFor, metric, postQuery, spawnGateway, startTestGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

const running = await startTestGateway({}, {}, { memoryBytes: 5000 });

const reads = (tier: string) => metric(running, `gateway_cache_reads_total{kind="token",tier="${tier}"`);

describe('memory', () => {
  it('holds a bounded number of taxpayers: those not asked for the longest come from the store again', async () => {
    const ids = running.sandbox.addTaxpayers(6);
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
    const ids = sandbox.addTaxpayers(130, { metadata: { notes: 'x'.repeat(900_000) } });
    const env = { ...environmentFor(sandbox), NODE_OPTIONS: '--max-old-space-size=96' };
    const small = await spawnGateway(env);

    const document = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { status metadata } }';
    for (const id of ids) {
      const { data } = await postQuery(small.origin, document, { id });
      expect(data).toMatchObject({ taxpayerToken: { status: 'CREATED' } });
    }
  });
});
