// The environment of the hostile benchmark: a service with latency, an identity provider, the built gateway with a small heap,
// twenty honest callers and one hostile one.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { collectingFlags, heldMegabytes } from '../heldMemory.js';
import { keepToHelperCores, startGateway, startIssuer, startService } from '../targets.js';
import { startHonestCallers } from './honest.js';

const honestCallers = 20;
const heapMegabytes = 256;
/** Starts all of it; `stop()` ends it. */
export async function startWorld({ latencyMs = 20, env = {} } = {}) {
  const service = await startService({ taxpayers: honestCallers });
  const issuer = await startIssuer();
  await service.control('setLatency', latencyMs);
  const heavy = await service.control('addTaxpayer', { metadata: { text: 'x'.repeat(900_000) } });
  const gateway = await startGateway({
    service,
    issuer,
    nodeFlags: [`--max-old-space-size=${heapMegabytes}`, ...collectingFlags],
    env: { RATE_LIMIT_PER_MINUTE: '1200', TOKEN_BUDGET_PER_HOUR: '600', LOG_LEVEL: 'debug', ...env },
  });
  const origin = new URL(gateway.url).origin;
  const tokenFor = async (sub, scope, claims = {}) =>
    `Bearer ${await issuer.provider.token({ sub, scope, ...claims }, { expiresIn: 36_000 })}`;
  const reading = 'taxpayers:read refresh-jobs:read';
  const target = {
    origin,
    socketUrl: `${origin.replace('http', 'ws')}/graphql`,
    authorization: await tokenFor('hostile', `${reading} taxpayers:any`),
    freshAuthorizations: await Promise.all(
      Array.from({ length: 500 }, (_, n) => tokenFor('hostile', `${reading} taxpayers:any`, { jti: `${n}` })),
    ),
    jobs: service.jobs,
    heavy: heavy.id,
  };
  const callers = await Promise.all(
    Array.from({ length: honestCallers }, async (_, n) => {
      const taxpayerId = service.taxpayerIds[n];
      const scope = `${reading} client-links:create`;
      const job = service.jobs.find((each) => each.taxpayerId === taxpayerId);
      return { job, authorization: await tokenFor(`honest-${n}`, scope, { taxpayer_ids: [taxpayerId] }) };
    }),
  );
  const attacker = fork(fileURLToPath(new URL('attacker.js', import.meta.url)));
  keepToHelperCores(process.pid); // not the hostile one, which may use the idle time of every core
  for (const pid of [gateway.pid, service.pid, process.pid]) favour(pid);
  const honest = startHonestCallers(origin, callers);
  let logLines = 0;
  gateway.output.on('data', (text) => {
    logLines += text.split('\n').length - 1;
  });
  let hasEnded = false;
  gateway.ended.then(() => {
    hasEnded = true;
  });
  return {
    honest,
    /** Runs the named attacks together for `seconds`. @returns how many refusals they counted */
    async attack(names, seconds) {
      attacker.send({ names, target, seconds });
      const [{ refused }] = await once(attacker, 'message');
      return refused;
    },
    /** How many lines the gateway has logged. */
    logLines: () => logLines,
    /** Stops reading the gateway's log; `false` resumes. */
    stallLog: (isStalled) => (isStalled ? gateway.output.pause() : gateway.output.resume()),
    /** The memory that the gateway holds after a garbage collection. */
    megabytes: () => heldMegabytes(gateway, () => hasEnded),
    hasEnded: () => hasEnded,
    async stop() {
      attacker.kill();
      await honest.stop();
      if (!hasEnded) await gateway.stop();
      issuer.stop();
      await service.stop();
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
