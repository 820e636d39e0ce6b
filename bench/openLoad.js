// Open-loop load: each request is due at a fixed time, whether or not earlier ones are answered, and its latency counts from
// then. A target that stalls is thus charged for every request that falls due meanwhile (no coordinated omission).

import { once } from 'node:events';
import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long to wait for answers after the last request is due. */
const graceMs = 5000;

/**
 * Sends `requests` in turn, from the `first` on, evenly at `perSecond` for `seconds`, over `connections`. Returns what
 * `closedLoad` in load.js does, and also `due` and `unanswered`. The latency of an unanswered request is its wait so far.
 */
export async function openLoad({ requests, url, headers, connections, first, seconds, perSecond }) {
  const latency = createHistogram({ lowest: 1, highest: 600_000_000_000, figures: 3 });
  const counts = { due: 0, requests: 0, failed: 0, unanswered: 0, firstFailure: undefined };
  const waiting = []; // requests that are due while no connection is free
  let taken = 0;
  const record = (dueAt) => latency.record(Math.max(1, Math.round((performance.now() - dueAt) * 1e6)));
  const next = (connection) => {
    if (taken === waiting.length) return idle.push(connection);
    const due = waiting[taken++];
    connection.send(due);
  };
  const onAnswer = (connection, { dueAt }, failure) => {
    record(dueAt);
    counts.requests += 1;
    if (failure !== undefined) {
      counts.failed += 1;
      counts.firstFailure ??= failure;
    }
    next(connection);
  };
  const target = new URL(url);
  const all = await Promise.all(Array.from({ length: connections }, () => Connection.open(target, onAnswer)));
  const idle = [...all];
  const textOf = requestText(target, headers);
  const total = Math.round(perSecond * seconds);
  const startedAt = performance.now();
  // A busy loop, because timers are too coarse.
  while (counts.due < total || counts.requests < counts.due) {
    const now = performance.now();
    if (now > startedAt + seconds * 1000 + graceMs) break;
    while (counts.due < total && startedAt + (counts.due * 1000) / perSecond <= now) {
      const dueAt = startedAt + (counts.due * 1000) / perSecond;
      const due = { dueAt, text: textOf(requests[(first + counts.due) % requests.length]) };
      counts.due += 1;
      if (idle.length > 0) idle.pop().send(due);
      else waiting.push(due);
    }
    await nextTurn();
  }
  for (const { dueAt } of [...all.flatMap(({ busy }) => busy ?? []), ...waiting.slice(taken)]) {
    record(dueAt);
    counts.unanswered += 1;
  }
  for (const connection of all) connection.close();
  const [p50Ms, p99Ms, p999Ms] = [50, 99, 99.9].map((share) => latency.percentile(share) / 1e6);
  return { ...counts, seconds, p50Ms, p99Ms, p999Ms };
}

/** @returns a function from a request to its bytes, which caches them for repeated requests */
function requestText({ host, pathname }, headers) {
  const texts = new Map();
  return (request) => {
    const known = texts.get(request);
    if (known !== undefined) return known;
    const { body, ...own } = typeof request === 'string' ? { body: request } : request;
    const lines = Object.entries({ host, ...headers, ...own, 'content-length': Buffer.byteLength(body) });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const text = `POST ${pathname} HTTP/1.1\r\n${head}\r\n${body}`;
    texts.set(request, text);
    return text;
  };
}

/** A keep-alive connection with at most one request in flight. It reconnects when it is closed. */
class Connection {
  busy;
  #socket;
  #read = '';
  #isOver = false;

  static async open(target, onAnswer) {
    const connection = new Connection(target, onAnswer);
    await once(connection.#socket, 'connect');
    return connection;
  }

  constructor(target, onAnswer) {
    this.target = target;
    this.onAnswer = onAnswer;
    this.#connect();
  }

  send(due) {
    this.busy = due;
    this.#socket.write(due.text);
  }

  close() {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #connect() {
    const { hostname, port } = this.target;
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true })
      .setEncoding('latin1')
      .on('data', (text) => this.#take(text))
      .on('error', () => {})
      .on('close', () => this.#closed());
  }

  #take(text) {
    this.#read += text;
    const end = this.#read.indexOf('\r\n\r\n');
    if (end === -1) return;
    const head = this.#read.slice(0, end);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined) return this.#done(`An answer without Content-Length: ${head}`);
    if (this.#read.length < end + 4 + Number(length)) return;
    const isFine = head.startsWith('HTTP/1.1 200 ') && !this.#read.includes('"errors":', end);
    this.#done(isFine ? undefined : this.#read.slice(0, 600));
  }

  #done(failure) {
    const due = this.busy;
    this.busy = undefined;
    this.#read = '';
    if (due !== undefined) this.onAnswer(this, due, failure);
  }

  #closed() {
    if (this.#isOver) return;
    this.#read = '';
    this.#connect();
    if (this.busy !== undefined) this.#done('The connection was closed');
  }
}
