import { environmentFor, postQuery, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

it('Memory lasts in a small process, however large the records', async () => {
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
