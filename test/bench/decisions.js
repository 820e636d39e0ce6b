// What a remembered decision costs: a hot token record for a caller whose token lists the taxpayer, with and without a
// decision point, beside one for a caller of whom the decision point alone knows.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDecisionPoint } from '../../examples/decision-point/decisionPoint.js';
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
  const listed = await callerWith({ taxpayer_ids: [taxpayerId] });
  const asked = { AUTH_DECISION_URL: point.url, AUTH_DECISION_TTL_SECONDS: '3600' };
  const running = [];
  try {
    for (const [name, issuer, env] of [
      ['listed in the token', listed, {}],
      ['listed in the token, a decision point beside', listed, asked],
      ['decided, and remembered', await callerWith({}), asked],
    ]) {
      running.push({ ...(await startGateway({ ...world, env })), name, issuer, samples: [] });
    }
    const bodies = [JSON.stringify({ query: hotToken, variables: { id: taxpayerId } })];
    const measured = (gateway, time) => measure(gateway, { ...world, issuer: gateway.issuer, bodies, seconds: time });
    for (const gateway of running) await measured(gateway, warmUpSeconds);
    for (let turn = 0; turn < rounds; turn += 1) {
      // There and back, so that none is always the first.
      for (const gateway of turn % 2 ? running.toReversed() : running) {
        gateway.samples.push((await measured(gateway, seconds)).cpuUs);
      }
    }
    const text = tableOf(running);
    process.stdout.write(`\n${text}`);
    return text;
  } finally {
    for (const gateway of running) await gateway.stop();
    await point.stop();
    rmSync(directory, { recursive: true });
  }
}

function tableOf(gateways) {
  const [{ samples: base }] = gateways;
  const rows = gateways.map(({ name, samples }, place) => {
    const moreUs = median(samples.map((cpuUs, turn) => cpuUs - base[turn]));
    const met = place === 0 ? '' : `at most ${mostUs} µs: ${moreUs <= mostUs ? 'yes' : 'no'}`;
    return [name, round(median(samples)), `${moreUs.toFixed(1)} µs`, met];
  });
  const title = `**A hot token record, by who says that the caller may see it** (\`decisions\`)`;
  return `${title}\n\n${table(['taxpayer', 'CPU µs/request', 'more', 'meant'], rows)}`;
}
