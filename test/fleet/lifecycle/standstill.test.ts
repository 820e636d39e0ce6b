import { setTimeout as sleep } from 'node:timers/promises';
import { environmentFor, postQuery, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

it('A process that stood still for longer than a call may take reads the answer that came meanwhile', async () => {
  const sandbox = await startSandbox();
  const limits = { UPSTREAM_TIMEOUT_MS: '1500', UPSTREAM_DEADLINE_MS: '1500' };
  const gateway = await spawnGateway({ ...environmentFor(sandbox), ...limits });
  const { id } = sandbox.addTaxpayer({ metadata: { filler: 'x'.repeat(300_000) } }); // read in pieces
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'held' }, times: 1 });
  const reading = postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
  await sandbox.whenCalled('taxpayerToken', 1);
  gateway.child.kill('SIGSTOP');
  sandbox.release('held');
  await sleep(2000);
  gateway.child.kill('SIGCONT');
  expect(await reading).toMatchObject({ data: { taxpayerToken: { status: 'CREATED' } } });
});
