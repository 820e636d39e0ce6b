// Long-lived connections of the baseline rawHttp: WebSockets that are only acknowledged, and event streams that follow a job.
// All streams of a job share one poll loop, with backoff while the job does not change.

import { WebSocketServer } from 'ws';

const firstPauseMs = 1000;
const longestPauseMs = 30_000;

/** Accepts WebSockets on `server`. */
export function acceptSockets(server, verifyCaller) {
  new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' }).on('connection', (socket) => {
    socket
      .on('error', () => {})
      .on('message', async (data) => {
        try {
          await verifyCaller(JSON.parse(data).payload.authorization);
          socket.send('{"type":"connection_ack"}');
        } catch {
          socket.close();
        }
      });
  });
}

/** Event streams that follow jobs of a CachedService. */
export class JobStreams {
  #watched = new Map();

  constructor(service) {
    this.service = service;
  }

  add({ taxpayerId, jobId }, response) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const key = `${taxpayerId}\n${jobId}`;
    let watched = this.#watched.get(key);
    if (!watched) {
      watched = { taxpayerId, jobId, responses: new Set(), text: undefined, pauseMs: firstPauseMs };
      this.#watched.set(key, watched);
      this.#poll(key, watched);
    }
    watched.responses.add(response);
    if (watched.text !== undefined) response.write(eventOf(watched));
    response.once('close', () => watched.responses.delete(response));
  }

  async #poll(key, watched) {
    const job = await Promise.resolve(this.service.job(watched.taxpayerId, watched.jobId)).catch(() => undefined);
    const text = job && JSON.stringify({ name: job.name, status: job.status });
    if (job && text !== watched.text) {
      Object.assign(watched, { text, pauseMs: firstPauseMs });
      for (const response of watched.responses) response.write(eventOf(watched));
    } else watched.pauseMs = Math.min(longestPauseMs, watched.pauseMs * 1.5);
    if (watched.responses.size === 0) this.#watched.delete(key);
    else setTimeout(() => this.#poll(key, watched), watched.pauseMs);
  }
}

function eventOf({ text }) {
  return `event: next\ndata: {"data":{"refreshJobUpdated":${text}}}\n\n`;
}
