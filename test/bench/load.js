// The loader, a process of its own: keep-alive connections on bare sockets, each sending the next request as soon as it
// has the answer to its last. It costs a few microseconds per request, so that two cores are enough for it, the target
// and the service. Told what to do by messages from main.js.

import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';

process.on('message', async (order) => process.send(await load(order)));

/**
 * Sends `bodies` in turn, from the `first` on, over `connections` until `durationMs` are over or `count` requests are answered. A request fails
 * when its answer has an error in it, or another status than 200.
 */
async function load({ url, headers, bodies, connections, first = 0, durationMs = Infinity, count = Infinity }) {
  const { hostname, port, pathname } = new URL(url);
  const requests = bodies.map((body) => rendered({ pathname, hostname, headers, body }));
  const latency = createHistogram({ lowest: 1, highest: 60_000_000_000, figures: 3 });
  const state = { sent: 0, answered: 0, failed: 0, firstFailure: undefined };
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;

  const next = () =>
    state.sent < count && performance.now() < endsAt ? requests[(first + state.sent++) % requests.length] : undefined;
  const onAnswer = (answer, nanoseconds) => {
    state.answered += 1;
    latency.record(Math.max(1, nanoseconds));
    if (answer.startsWith('HTTP/1.1 200') && !answer.includes('"errors":')) return;
    state.failed += 1;
    state.firstFailure ??= answer.slice(0, 600);
  };
  await Promise.all(Array.from({ length: connections }, () => converse({ hostname, port: +port, next, onAnswer })));
  return {
    requests: state.answered,
    failed: state.failed,
    firstFailure: state.firstFailure,
    seconds: (performance.now() - startedAt) / 1000,
    p50Ms: latency.percentile(50) / 1e6,
    p99Ms: latency.percentile(99) / 1e6,
  };
}

function rendered({ pathname, hostname, headers, body }) {
  const lines = Object.entries({ host: hostname, ...headers, 'content-length': Buffer.byteLength(body) });
  return Buffer.from(
    `POST ${pathname} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n${body}`,
    'latin1',
  );
}

/** One connection's requests, one after the other; resolves when there is no next one. */
function converse({ hostname, port, next, onAnswer }) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port, noDelay: true });
    let sentAt = 0n;
    let received = '';
    const send = () => {
      const request = next();
      if (request === undefined) {
        socket.end();
        resolve();
        return;
      }
      sentAt = process.hrtime.bigint();
      socket.write(request);
    };
    socket.setEncoding('latin1');
    socket.on('connect', send);
    socket.on('data', (text) => {
      received = received === '' ? text : received + text;
      if (!isWhole(received)) return;
      onAnswer(received, Number(process.hrtime.bigint() - sentAt));
      received = '';
      send();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve());
  });
}

/** Whether an answer has all its bytes, counted by its length or ended by its last chunk. */
function isWhole(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end + 2));
  return length ? text.length - end - 4 >= Number(length[1]) : text.endsWith('\r\n0\r\n\r\n');
}
