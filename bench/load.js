// The load generator, a process of its own. The message `{ requests }` sets the requests; any other message is an order to
// send them.

import { createHistogram } from 'node:perf_hooks';
import autocannon from 'autocannon';
import { openLoad } from './openLoad.js';

let requests = [];

process.on('message', async (message) => {
  if (message.requests !== undefined) requests = message.requests;
  else process.send(await (message.perSecond === undefined ? closedLoad : openLoad)({ requests, ...message }));
});

/**
 * Closed-loop load with autocannon: each keep-alive connection sends its next request when its last is answered. Sends the
 * requests in turn, from the `first` on, for `seconds`, or `amount` of them, a multiple of `connections`. A request is a body
 * or `{ body, authorization }`. It fails when its answer has errors or a status other than 200.
 */
async function closedLoad({ requests, url, headers, connections, first, seconds, amount }) {
  const latency = createHistogram({ lowest: 1, highest: 60_000_000_000, figures: 3 });
  let firstFailure;
  let place = first;
  const startedAt = performance.now();
  let lastAnswerAt = startedAt;
  const run = autocannon({
    url,
    method: 'POST',
    headers,
    connections,
    ...(amount === undefined ? { duration: seconds } : { amount }),
    // Connections take turns: the n-th sends the n-th request, and then every `connections`-th after it.
    setupClient: (client) => {
      const own = place++;
      const length = Math.ceil(Math.min(requests.length, amount ?? requests.length) / connections);
      client.setRequests(
        Array.from({ length }, (_, turn) => asAutocannon(requests[(own + turn * connections) % requests.length])),
      );
    },
    verifyBody: (body) => {
      if (!String(body).includes('"errors":')) return true;
      firstFailure ??= String(body).slice(0, 600);
      return false;
    },
  });
  // Autocannon's own histogram has only whole milliseconds.
  run.on('response', (_, _status, _bytes, milliseconds) => {
    lastAnswerAt = performance.now();
    latency.record(Math.max(1, Math.round(milliseconds * 1e6)));
  });
  const { requests: counted, mismatches, non2xx, errors, duration } = await run;
  return {
    requests: counted.total,
    failed: mismatches + non2xx + errors,
    firstFailure,
    seconds: amount === undefined ? duration : (lastAnswerAt - startedAt) / 1000,
    p50Ms: latency.percentile(50) / 1e6,
    p99Ms: latency.percentile(99) / 1e6,
  };
}

function asAutocannon(request) {
  if (typeof request === 'string') return { body: request };
  const { body, authorization } = request;
  return { body, headers: { authorization } };
}
