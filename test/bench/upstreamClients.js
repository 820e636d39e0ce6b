// What one call to the service costs in this process with the client the gateway uses, as it uses it, beside undici (the
// client inside Node's fetch) and bare node:http.

import { Agent, get } from 'node:http';
import nodeFetch from 'node-fetch';
import { ResilientFetch } from '../../dist/upstream/ResilientFetch.js';
import { cpuRatio, median } from './measure.js';
import { round, table } from './report.js';

const calls = 5000;
const bare = 'node-fetch';
const ours = 'node-fetch with deadlines, bounds, breaker (ours)';
/** Of what a bare call costs, how much ours may. */
const most = 1.1;

/** Prints and returns the table. */
export async function upstreamClients(service) {
  const agent = new Agent({ keepAlive: true });
  const limits = { timeoutMs: 5000, deadlineMs: 10_000, breakerResetMs: 10_000, maxResponseBytes: 1_048_576 };
  const resilient = new ResilientFetch(limits);
  const [taxpayerId] = service.taxpayerIds;
  const url = `${service.url}/auth/tax-payer/${taxpayerId}/token`;
  const credentials = Buffer.from('bench-client:bench-secret-not-real').toString('base64');
  const headers = { authorization: `Bearer ${credentials}`, 'service-api-version': '2024-01-01' };
  const clients = {
    'node:http': () => bareGet(url, { agent, headers }),
    'undici (fetch of Node.js)': async () => (await fetch(url, { headers })).json(),
    [bare]: async () => (await nodeFetch(url, { headers, agent })).json(),
    [ours]: async () => (await resilient.call({ endpoint: 'taxpayerToken', method: 'GET', url, headers })).json,
  };
  const samples = new Map(Object.keys(clients).map((name) => [name, []]));
  for (let turn = 0; turn < 6; turn += 1) {
    for (const [name, call] of Object.entries(clients)) {
      const cost = await cpuPerCall(call);
      if (turn > 0) samples.get(name).push(cost); // the first turn warms up
    }
  }
  agent.destroy();
  resilient.stop();
  const bareCosts = samples.get(bare);
  const rows = [...samples].map(([name, costs]) => {
    const ratio = cpuRatio({ cpuOfRounds: costs }, { cpuOfRounds: bareCosts });
    const met = name === ours ? `at most ${most}x: ${ratio <= most ? 'yes' : 'no'}` : '';
    return [name, round(median(costs)), `${ratio.toFixed(2)}x`, met];
  });
  const columns = ['client', 'CPU µs/call', `to ${bare}`, 'meant'];
  const text = `**One call to the service, by client** (\`upstream-clients\`)\n\n${table(columns, rows)}`;
  process.stdout.write(`\n${text}`);
  return text;
}

async function cpuPerCall(call) {
  const before = process.cpuUsage();
  for (let made = 0; made < calls; made += 4) await Promise.all([call(), call(), call(), call()]);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

function bareGet(url, options) {
  return new Promise((resolve, reject) => {
    get(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(JSON.parse(text)));
    }).on('error', reject);
  });
}
