// Requests that are refused at once, at the highest rate of a cheap sender: written by hand, pipelined, with their answers
// counted but not parsed.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export const refusalsPerSecond = 10_000;
const connections = 50;
/** Milliseconds between two rounds over the connections. */
const everyMs = 5;
/** Per connection: with so many answers outstanding, it sends nothing. */
const maxUnanswered = 4;

/** Requests without a token, with a bad one, with new bad ones, and beyond the rate limit. @returns how many were answered */
export async function refusals({ origin, authorization }, over) {
  const { hostname, port } = new URL(origin);
  const ways = [
    () => '',
    () => 'Authorization: Bearer made.up.token\r\n',
    (n) => `Authorization: Bearer made.up.${n}\r\n`,
    () => `Authorization: ${authorization}\r\n`,
  ];
  const body = '{"query":"{ __typename }"}';
  const textOf = (n) =>
    `POST /graphql HTTP/1.1\r\nHost: ${hostname}\r\n${ways[n % ways.length](n)}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const senders = Array.from({ length: connections }, () => new Sender(hostname, Number(port)));
  const startedAt = performance.now();
  let due = 0;
  let sent = 0;
  while (!over.aborted) {
    due = Math.floor(((performance.now() - startedAt) / 1000) * refusalsPerSecond);
    const each = Math.ceil((due - sent) / connections);
    for (const sender of senders) {
      const count = Math.min(each, due - sent, maxUnanswered - sender.unanswered);
      if (count <= 0) continue;
      sender.send(Array.from({ length: count }, (_, place) => textOf(sent + place)).join(''), count);
      sent += count;
    }
    sent = Math.max(sent, due - refusalsPerSecond / 10); // requests that the gateway could not take are not sent later
    await delay(everyMs);
  }
  for (const sender of senders) sender.socket.destroy();
  return senders.reduce((sum, { answered }) => sum + answered, 0);
}

class Sender {
  unanswered = 0;
  answered = 0;

  constructor(host, port) {
    this.socket = connect(port, host)
      .setNoDelay()
      .on('error', () => {});
    this.socket.on('data', (chunk) => {
      // Each answer has one status line. A status line split between two chunks, which is rare, is not counted.
      for (let at = chunk.indexOf('HTTP/1.1 '); at !== -1; at = chunk.indexOf('HTTP/1.1 ', at + 9)) {
        this.answered += 1;
        this.unanswered = Math.max(0, this.unanswered - 1);
      }
    });
  }

  send(text, count) {
    if (this.socket.destroyed) return;
    this.unanswered += count;
    this.socket.write(text, 'latin1');
  }
}
