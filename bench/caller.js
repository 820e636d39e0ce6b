// What callers of a gateway do: ask, and open a WebSocket.

import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { quantile } from './quantile.js';

/** Sends an operation. @returns how long it took, and the failure, if any: an answer that is not 200 or has errors is one */
export function ask({ url, agent, authorization }, operation) {
  const body = JSON.stringify(operation);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(authorization && { authorization }),
  };
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const done = (failure) => resolve({ ms: performance.now() - startedAt, failure });
    const failed = (error) => done(String(error));
    const answered = async (response) => {
      const answer = await text(response);
      const isFine = response.statusCode === 200 && !answer.includes('"errors":');
      done(isFine ? undefined : `${response.statusCode} ${answer.slice(0, 600)}`);
    };
    request(url, { method: 'POST', agent, headers }, (response) => answered(response).catch(failed))
      .on('error', failed)
      .end(body);
  });
}

/** A socket that the gateway has acknowledged, or has closed. */
export async function openSocket({ url, authorization }) {
  const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', { perMessageDeflate: false });
  socket.on('error', () => {});
  socket.once('open', () => socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } })));
  await nextMessage(socket);
  return socket;
}

/** On a socket that has been closed, it does nothing. */
export function subscribe(socket, id, payload) {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ id, type: 'subscribe', payload }));
}

/** What the socket receives next; undefined when it is closed. */
export async function nextMessage(socket) {
  if (socket.readyState > socket.OPEN) return undefined;
  return new Promise((resolve) => {
    socket.once('message', (data) => resolve(String(data))).once('close', () => resolve(undefined));
  });
}

/** What became of `answers` of {@link ask}. */
export function outcomeOf(answers) {
  const failures = answers.filter(({ failure }) => failure !== undefined);
  if (failures.length > 0) process.stderr.write(`  first failure: ${failures[0].failure}\n`);
  const [p50, p99] = [0.5, 0.99].map((share) =>
    quantile(
      answers.map(({ ms }) => ms),
      share,
    ),
  );
  return { requests: answers.length, failed: failures.length, p50, p99 };
}
