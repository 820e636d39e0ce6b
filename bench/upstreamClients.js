// The CPU cost of one call to the service in this process, with the gateway's own client, with node-fetch alone, with undici
// (the client inside Node's fetch) and with bare node:http.

import { Agent, get } from 'node:http';
import nodeFetch from 'node-fetch';
import { ResilientFetch } from '../src/upstream/ResilientFetch.ts';
import { costsInTurn, costsTable, ratioOf } from './inTurn.js';

const calls = 5000;
const bare = 'node-fetch';
const ours = 'node-fetch with deadlines, bounds, breaker (ours)';

/** Prints and returns the table. Puts the ratio into `results`, for the promises. */
export async function upstreamClients(service, results) {
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
  const samples = await costsInTurn(clients, calls);
  agent.destroy();
  resilient.stop();
  const columns = ['client', 'CPU µs/call', `to ${bare}`];
  const text = `**One call to the service, by client** (\`upstream-clients\`)\n\n${costsTable(columns, samples, bare)}`;
  process.stdout.write(`\n${text}`);
  results['upstream-clients'] = ratioOf(samples, ours, bare);
  return text;
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
