// Requests that are refused at once, at the highest rate of a cheap sender: written by hand, pipelined, with their answers
// counted but not parsed.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const perMs = 10;
const connections = 50;
/** Milliseconds between two rounds over the connections. */
const everyMs = 5;
/** Per connection: with so many answers outstanding, it sends nothing. */
const maxUnanswered = 4;
/** Requests that the gateway could not take in a tenth of a second are not sent later. */
const mostLate = 100 * perMs;

/** Requests without a token, with a bad one, with new bad ones, and beyond the rate limit. */
export async function refusals({ origin, authorization }, over) {
  const { host } = new URL(origin);
  const ways = [
    () => '',
    () => 'Authorization: Bearer made.up.token\r\n',
    (n) => `Authorization: Bearer made.up.${n}\r\n`,
    () => `Authorization: ${authorization}\r\n`,
  ];
  const body = '{"query":"{ __typename }"}';
  const rest = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const textOf = (n) => `POST /graphql HTTP/1.1\r\nHost: ${host}\r\n${ways[n % ways.length](n)}${rest}`;
  const senders = Array.from({ length: connections }, () => openSender(new URL(origin)));
  const startedAt = performance.now();
  for (let sent = 0; !over.aborted; ) {
    const due = Math.floor((performance.now() - startedAt) * perMs);
    sent = Math.max(sent, due - mostLate);
    for (const sender of senders) {
      while (sent < due && sender.unanswered < maxUnanswered && !sender.socket.destroyed) {
        sender.socket.write(textOf(sent), 'latin1');
        sender.unanswered += 1;
        sent += 1;
      }
    }
    await delay(everyMs);
  }
  for (const { socket } of senders) socket.destroy();
}

function openSender({ hostname, port }) {
  const socket = connect(Number(port), hostname)
    .setNoDelay()
    .on('error', () => {});
  const sender = { socket, unanswered: 0 };
  socket.on('data', (chunk) => {
    // Each answer has one status line. A status line split between two chunks, which is rare, is not counted.
    for (let at = chunk.indexOf('HTTP/1.1 '); at !== -1; at = chunk.indexOf('HTTP/1.1 ', at + 9)) {
      sender.unanswered = Math.max(0, sender.unanswered - 1);
    }
  });
  return sender;
}
