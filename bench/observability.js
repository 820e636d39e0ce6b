// The cost of observability: the gateway with various log and trace settings beside itself without any, in turn. All get the
// same load, at which no process waits for another. At saturation, the readers of logs and spans would take CPU time from the
// loader; fewer requests would then arrive together, and each would cost more.

import { createServer } from 'node:http';
import { cpuRatio, measure, median } from './measure.js';
import { hotToken } from './queries.js';
import { round, table } from './report.js';
import { startGateway } from './targets.js';

const nothing = { LOG_OPERATIONS: 'none' };
/** Share of the gateway's capacity without logs and traces. */
const shareOfCapacity = 0.5;

/** The first is the base of the comparison. `most` is the promised ratio. */
const settings = (collector) => {
  const traced = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  };
  return [
    { name: 'nothing', env: nothing },
    { name: 'defaults', env: {}, most: 1.03 },
    { name: 'LOG_OPERATIONS=all', env: { LOG_OPERATIONS: 'all' } },
    { name: 'traced at 10 %', env: traced },
    { name: 'LOG_OPERATIONS=all, traced at 10 %', env: { LOG_OPERATIONS: 'all', ...traced }, most: 1.15 },
  ];
};

/** Prints and returns the table. Each round starts new processes, because some are slower than others for their whole life. */
export async function observability(world, { rounds, seconds, warmUpSeconds }) {
  const collector = await startCollector();
  const gateways = settings(collector).map((setting) => ({ ...setting, cpuOfRounds: [] }));
  const { taxpayerIds } = world.service;
  const bodies = [JSON.stringify({ query: hotToken, variables: { id: taxpayerIds[0] } })];
  let perSecond;
  try {
    for (let turn = 0; turn < rounds; turn += 1) {
      // The order alternates, so that none is always the first.
      for (const gateway of turn % 2 ? gateways.toReversed() : gateways) {
        const running = await startGateway({ ...world, env: gateway.env });
        try {
          const atMost = await measure(running, { ...world, bodies, seconds: warmUpSeconds });
          perSecond ??= Math.round(shareOfCapacity * atMost.perSecond);
          gateway.cpuOfRounds.push((await measure(running, { ...world, bodies, seconds, perSecond })).cpuUs);
        } finally {
          await running.stop();
        }
      }
    }
  } finally {
    collector.stop();
  }
  const text = tableOf(gateways, perSecond);
  process.stdout.write(`\n${text}`);
  return text;
}

function tableOf(gateways, perSecond) {
  const rows = gateways.map((gateway) => {
    const { name, most, cpuOfRounds } = gateway;
    const ratio = cpuRatio(gateway, gateways[0]);
    const met = most === undefined ? '' : `at most ${most}x: ${ratio <= most ? 'yes' : 'no'}`;
    return [name, round(median(cpuOfRounds)), `${ratio.toFixed(3)}x`, met];
  });
  const title = `**A hot token record, ${perSecond} times a second, by what is logged and traced** (\`observability\`)`;
  return `${title}\n\n${table(['settings', 'CPU µs/request', 'to nothing', 'meant'], rows)}`;
}

/** A collector that discards its spans. */
async function startCollector() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => server.close().closeAllConnections(),
  };
}
