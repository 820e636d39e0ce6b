import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { environmentFor, postQuery, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';

it('A process that stood still for longer than a call may take reads the answer that came meanwhile', async () => {
  const sandbox = await startSandbox();
  const { control } = sandbox;
  const limits = { UPSTREAM_TIMEOUT_MS: '1500', UPSTREAM_DEADLINE_MS: '3000' };
  const gateway = await spawnGateway({ ...environmentFor(sandbox), ...limits });
  control.arm({ endpoint: 'createClientLink', fault: { gate: 'held' }, times: 1 });
  const creating = postQuery(gateway.origin, 'mutation { createClientLink(input: {}) { replayed } }');
  await control.whenCalled('createClientLink', 1);
  gateway.child.kill('SIGSTOP');
  control.release('held');
  await sleep(2000);
  gateway.child.kill('SIGCONT');
  expect(await creating).toMatchObject({ data: { createClientLink: { replayed: false } } });
});
