import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { childrenOf } from '../support/childrenOf.js';
import { type GatewayProcess, spawnGateway } from '../support/gateway.js';
import { until } from '../support/until.js';

let gateway: GatewayProcess;
let stopped: number | undefined;
const start = async () => {
  gateway = await spawnGateway({ PORT: '0', WORKERS: '2', CACHE_URL: 'memory:', DRAIN_TIMEOUT_MS: '500' });
};
afterEach(() => {
  if (stopped !== undefined && isThere(stopped)) process.kill(stopped, 'SIGKILL');
  stopped = undefined;
  gateway.child.kill('SIGKILL');
});

/** Has a worker hang; returns its process id. */
async function hangingWorker(): Promise<number> {
  const [worker = 0] = await childrenOf(gateway.pid);
  process.kill(worker, 'SIGSTOP');
  stopped = worker;
  return worker;
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('A worker that hangs is killed 10 s after the drain', async () => {
  await start();
  const worker = await hangingWorker();
  expect(await gateway.stop()).toBe(0);
  expect(isThere(worker)).toBe(false);
  const told = /"level":"error".*"workers":\[(\d+)\],"msg":"worker processes hang and are killed"/.exec(
    gateway.output(),
  );
  expect(told?.[1]).toBe(String(worker));
}, 30_000);

it('A worker that hangs is killed at the second signal', async () => {
  await start();
  const worker = await hangingWorker();
  gateway.child.kill('SIGTERM');
  await until(async () => (await childrenOf(gateway.pid)).length === 1); // the other one has ended
  gateway.child.kill('SIGTERM');
  await once(gateway.child, 'exit');
  await until(() => !isThere(worker));
}, 20_000);

it('A worker that dies before it gets an answer leaves its primary alive', async () => {
  await start();
  const before = await childrenOf(gateway.pid);
  process.kill(before[0] ?? 0, 'SIGKILL');
  let fresh: number | undefined;
  await until(async () => {
    fresh = (await childrenOf(gateway.pid)).find((pid) => !before.includes(pid));
    return fresh !== undefined;
  });
  gateway.child.kill('SIGSTOP');
  await delay(2000); // it asks meanwhile
  process.kill(fresh ?? 0, 'SIGKILL');
  await delay(100); // its end of the channel closes
  gateway.child.kill('SIGCONT');
  await until(() => gateway.output().split('a worker process died and is replaced').length === 3);
  await until(async () => (await childrenOf(gateway.pid)).length === 2);
  expect(gateway.output()).not.toContain('"fatal"');
}, 30_000);
