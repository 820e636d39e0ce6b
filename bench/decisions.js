// The cost of a cached decision: a hot token record for a caller whose access only the decision point grants, beside one for
// a caller whose token lists the taxpayer. Both ask the same process, in turn.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDecisionPoint } from '../examples/decision-point/decisionPoint.js';
import { measure, median } from './measure.js';
import { hotToken } from './queries.js';
import { round, table } from './report.js';
import { startGateway } from './targets.js';

const mostUs = 3;

/** Prints and returns the table. */
export async function decisions(world, { rounds, seconds, warmUpSeconds }) {
  const [taxpayerId] = world.service.taxpayerIds;
  const directory = mkdtempSync(join(tmpdir(), 'bench-decisions-'));
  const listsFile = join(directory, 'lists.json');
  writeFileSync(listsFile, JSON.stringify({ bench: [taxpayerId] }));
  const point = await startDecisionPoint({ listsFile });
  const callerWith = async (claims) => {
    const token = await world.issuer.provider.token(
      { sub: 'bench', scope: 'taxpayers:read', ...claims },
      { expiresIn: 36_000 },
    );
    return { ...world.issuer, authorization: `Bearer ${token}` };
  };
  const env = { AUTH_DECISION_URL: point.url, AUTH_DECISION_TTL_SECONDS: '3600' };
  const gateway = await startGateway({ ...world, env });
  try {
    const bodies = [JSON.stringify({ query: hotToken, variables: { id: taxpayerId } })];
    const callers = [
      { name: 'listed in the token', issuer: await callerWith({ taxpayer_ids: [taxpayerId] }), samples: [] },
      { name: 'decided, and remembered', issuer: await callerWith({}), samples: [] },
    ];
    const cpuOf = async (issuer, time) => (await measure(gateway, { ...world, issuer, bodies, seconds: time })).cpuUs;
    for (const { issuer } of callers) await cpuOf(issuer, warmUpSeconds);
    for (let turn = 0; turn < rounds; turn += 1) {
      // The order alternates, so that neither is always the first.
      for (const { issuer, samples } of turn % 2 ? callers.toReversed() : callers) {
        samples.push(await cpuOf(issuer, seconds));
      }
    }
    const text = tableOf(callers);
    process.stdout.write(`\n${text}`);
    return text;
  } finally {
    await gateway.stop();
    await point.stop();
    rmSync(directory, { recursive: true });
  }
}

function tableOf(callers) {
  const [{ samples: base }] = callers;
  const rows = callers.map(({ name, samples }, place) => {
    const moreUs = median(samples.map((cpuUs, turn) => cpuUs - base[turn]));
    const met = place === 0 ? '' : `at most ${mostUs} µs: ${moreUs <= mostUs ? 'yes' : 'no'}`;
    return [name, round(median(samples)), `${moreUs.toFixed(1)} µs`, met];
  });
  const title = `**A hot token record, by who says that the caller may see it** (\`decisions\`)`;
  return `${title}\n\n${table(['taxpayer', 'CPU µs/request', 'more', 'meant'], rows)}`;
}
