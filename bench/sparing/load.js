// A cheap load generator: it uses keep-alive connections, and checks every answer for errors.

import { Agent, request } from 'node:http';

/** A client of one or several gateways. Close it when done. */
export class Load {
  #agent = new Agent({ keepAlive: true, maxSockets: 1000 });

  /** Sends one operation; resolves with its latency in milliseconds and its failure, if any. */
  send(origin, query, variables) {
    const body = JSON.stringify({ query, variables });
    const startedAt = performance.now();
    return new Promise((resolve) => {
      const done = (failure) => resolve({ ms: performance.now() - startedAt, failure });
      const sent = request(
        `${origin}/graphql`,
        {
          method: 'POST',
          agent: this.#agent,
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => done(response.statusCode === 200 && !text.includes('"errors"') ? undefined : text));
          response.on('error', (error) => done(error.message));
        },
      );
      sent.on('error', (error) => done(error.message));
      sent.end(body);
    });
  }

  close() {
    this.#agent.destroy();
  }
}

/** Runs `work(n)` for n from 0 to count - 1, at most `concurrency` at once. */
export async function inParallel(count, concurrency, work) {
  const results = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const n = next++;
      results[n] = await work(n);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, lane));
  return results;
}

/** The value below which `share` of the sorted numbers lie. */
export function quantile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
