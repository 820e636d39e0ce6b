// The environment of the hostile benchmark: a service with latency, an identity provider, the built gateway with a small heap,
// twenty honest callers and one hostile one.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { inParallel } from '../inParallel.js';
import { keepToOtherCores, startGateway, startIssuer, startService } from '../processes.js';
import { startHonestCallers } from './honest.js';

const honestCallers = 20;
const heapMegabytes = 256;
const limits = { RATE_LIMIT_PER_MINUTE: '1200', TOKEN_BUDGET_PER_HOUR: '600', LOG_LEVEL: 'debug' };

/** Starts all of it by `start`, see `withStarted`. */
export async function startWorld(start) {
  const attacker = fork(fileURLToPath(new URL('attacker.js', import.meta.url)));
  await start({ stop: () => attacker.kill() });
  keepToOtherCores(); // not the hostile one, which may use the idle time of every core
  const service = await start(startService({ taxpayers: honestCallers, jobs: 100, latencyMs: 20 }));
  const issuer = await startIssuer();
  const heavy = await service.control('addTaxpayer', { metadata: { text: 'x'.repeat(900_000) } });
  const nodeFlags = [`--max-old-space-size=${heapMegabytes}`];
  const gateway = await start(startGateway(service, { env: { ...issuer.env, ...limits }, nodeFlags, isPinned: true }));
  const target = {
    origin: new URL(gateway.url).origin,
    url: gateway.url,
    authorization: await issuer.authorizationOf('hostile'),
    freshAuthorizations: await inParallel(500, 16, () => issuer.authorizationOf('hostile')),
    jobs: service.jobs,
    heavy: heavy.id,
  };
  const callers = await inParallel(honestCallers, 1, async (n) => {
    const job = service.jobs[n];
    const claims = { scope: 'taxpayers:read refresh-jobs:read client-links:create', taxpayer_ids: [job.taxpayerId] };
    return { job, authorization: await issuer.authorizationOf(`honest-${n}`, claims) };
  });
  for (const pid of [gateway.pid, service.pid, process.pid]) favour(pid);
  return {
    gateway,
    honest: await start(startHonestCallers(gateway.url, callers)),
    /** Runs the named attacks together for `seconds`. While one floods the log, nobody reads it. */
    async attack(names, seconds) {
      if (names.includes('log lines')) gateway.output.pause();
      attacker.send({ names, target, seconds });
      await once(attacker, 'message');
      gateway.output.resume();
    },
  };
}

/**
 * Raises the priority of a process above the hostile one's, where permitted: they share cores, and the time they wait for each
 * other is not the gateway's fault.
 */
function favour(pid) {
  try {
    setPriority(pid, -10);
  } catch {
    // only root may; without it, the latencies include some waits for other processes
  }
}
