import { setTimeout } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { environmentFor, postQuery, spawnGateway } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

it('a second signal more than a second later ends the process at once, whatever is under way', async () => {
  const sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
  const settings = { DRAIN_TIMEOUT_MS: '300000', UPSTREAM_TIMEOUT_MS: '60000', UPSTREAM_DEADLINE_MS: '60000' };
  const gateway = await spawnGateway({ ...environmentFor(sandbox), CACHE_URL: 'memory:', ...settings });
  try {
    sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'never' } });
    const { id } = sandbox.control.addTaxpayer();
    const called = sandbox.control.whenCalled('taxpayerToken', 1);
    const asked = postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    asked.catch(() => {});
    await called;
    gateway.child.kill('SIGTERM');
    const isDraining = async () => (await fetch(`${gateway.origin}/health/ready`)).status === 503;
    await until(isDraining);
    gateway.child.kill('SIGTERM');
    await setTimeout(1100);
    expect(gateway.child.exitCode).toBeNull();
    gateway.child.kill('SIGTERM');
    await until(() => gateway.child.exitCode !== null);
    expect(gateway.child.exitCode).toBe(1);
    await expect(asked).rejects.toThrow();
  } finally {
    await gateway.kill();
    await sandbox.stop();
  }
});
