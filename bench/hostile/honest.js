// Honest callers: each asks a few times a second for the data of a page, and creates a link now and then.

import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ask } from '../caller.js';

const everyMs = 200;

/** Starts one loop for each of `callers` (`{ authorization, job }`). `answers()` returns those since its last call. */
export function startHonestCallers(url, callers) {
  const agent = new Agent({ keepAlive: true });
  const over = new AbortController();
  let answers = [];
  const loops = callers.map(async ({ authorization, job }, place) => {
    await delay((everyMs / callers.length) * place);
    for (let turn = 0; !over.signal.aborted; turn += 1) {
      const dueAt = performance.now() + everyMs;
      const phase = answers; // an answer counts for the phase in which it was asked for
      phase.push(await ask({ url, agent, authorization }, { query: queryOf(job, turn) }));
      await delay(Math.max(0, dueAt - performance.now()));
    }
  });
  return {
    answers() {
      const phase = answers;
      answers = [];
      return phase;
    },
    async stop() {
      over.abort();
      await Promise.all(loops);
      agent.destroy();
    },
  };
}

function queryOf({ taxpayerId, jobId }, turn) {
  if (turn % 25 === 24) return 'mutation { createClientLink(input: {}) { clientLink { id } } }';
  if (turn % 2 === 0) return `{ refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status observedAt } }`;
  return `{ taxpayerToken(taxpayerId: "${taxpayerId}") { name status provider fetchedAt } }`;
}
