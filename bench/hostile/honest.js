// Honest callers: each asks a few times a second for the data of a page, and creates a link now and then.

import { Agent, request } from 'node:http';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Starts one loop for each of `callers` (`{ authorization, job }`). `phase()` returns the figures since its last call:
 * requests, how many failed, the first failure, and latencies in milliseconds.
 */
export function startHonestCallers(origin, callers, { everyMs = 200 } = {}) {
  const agent = new Agent({ keepAlive: true });
  const over = new AbortController();
  let current = emptyPhase();
  const loops = callers.map(async (caller, place) => {
    await delay((everyMs / callers.length) * place);
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const dueAt = performance.now() + everyMs;
      const phase = current;
      const startedAt = performance.now();
      const failure = await ask(`${origin}/graphql`, agent, caller.authorization, operationOf(caller, turn));
      phase.latency.record(Math.max(1, Math.round((performance.now() - startedAt) * 1e6)));
      phase.requests += 1;
      if (failure !== undefined) {
        phase.failed += 1;
        phase.firstFailure ??= failure;
      }
      await delay(Math.max(0, dueAt - performance.now()));
    }
  });
  return {
    phase() {
      const { latency, ...counts } = current;
      current = emptyPhase();
      return { ...counts, p50Ms: latency.percentile(50) / 1e6, p99Ms: latency.percentile(99) / 1e6 };
    },
    async stop() {
      over.abort();
      await Promise.all(loops);
      agent.destroy();
    },
  };
}

function emptyPhase() {
  const latency = createHistogram({ lowest: 1, highest: 120_000_000_000, figures: 3 });
  return { requests: 0, failed: 0, firstFailure: undefined, latency };
}

function operationOf({ job: { taxpayerId, jobId } }, turn) {
  if (turn % 25 === 24) return 'mutation { createClientLink(input: {}) { clientLink { id } } }';
  if (turn % 2 === 0) return `{ refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status observedAt } }`;
  return `{ taxpayerToken(taxpayerId: "${taxpayerId}") { name status provider fetchedAt } }`;
}

/** @returns the failure; undefined for an answer without errors */
function ask(url, agent, authorization, query) {
  return new Promise((resolve) => {
    const headers = { authorization, 'content-type': 'application/json', accept: 'application/json' };
    const sent = request(url, { method: 'POST', headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('error', (error) => resolve(String(error)));
      response.on('end', () => {
        const isFine = response.statusCode === 200 && !text.includes('"errors":');
        resolve(isFine ? undefined : `${response.statusCode} ${text.slice(0, 300)}`);
      });
    });
    sent.on('error', (error) => resolve(String(error)));
    sent.end(JSON.stringify({ query }));
  });
}
