// The load, a process of its own: autocannon on kept connections, each sending its next request when it has the answer to
// its last. Told what to do by messages.

import { createHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';

process.on('message', async (order) => process.send(await load(order)));

/**
 * Sends `bodies` in turn, from the `first` on, over `connections` for `seconds`. A request fails when its answer has an
 * error in it, or another status than 200.
 */
async function load({ url, headers, bodies, connections, first, seconds }) {
  const latency = createHistogram({ lowest: 1, highest: 60_000_000_000, figures: 3 });
  let firstFailure;
  let place = first;
  const run = autocannon({
    url,
    method: 'POST',
    headers,
    connections,
    duration: seconds,
    // Connections take turns: the n-th begins with the n-th body and goes on by as many as there are.
    setupClient: (client) => {
      const own = place++;
      const length = Math.ceil(bodies.length / connections);
      client.setRequests(
        Array.from({ length }, (_, turn) => ({ body: bodies[(own + turn * connections) % bodies.length] })),
      );
    },
    verifyBody: (body) => {
      if (!String(body).includes('"errors":')) return true;
      firstFailure ??= String(body).slice(0, 600);
      return false;
    },
  });
  // Its own latencies are whole milliseconds.
  run.on('response', (_, _status, _bytes, milliseconds) => latency.record(Math.max(1, Math.round(milliseconds * 1e6))));
  const { requests, mismatches, non2xx, errors, duration } = await run;
  return {
    requests: requests.total,
    failed: mismatches + non2xx + errors,
    firstFailure,
    seconds: duration,
    p50Ms: latency.percentile(50) / 1e6,
    p99Ms: latency.percentile(99) / 1e6,
  };
}
