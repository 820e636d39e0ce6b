// The attacks of a hostile caller, one function each. Each is given the target and runs until `over` aborts. Whether an attack
// reads, awaits or ignores the answers is part of it.

import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { openSocket, subscribe } from '../caller.js';
import { refusals } from './refusals.js';

let agent = newAgent();
let runs = 0;

/** Aborts every request that is not answered yet, also those that wait for a connection. */
export function hangUp() {
  for (const waiting of Object.values(agent.requests).flat()) waiting.destroy();
  agent.destroy();
  agent = newAgent();
}

/** By name. */
export const attacks = {
  documents,
  'fields through fragments': fieldsThroughFragments,
  'fields of events': fieldsOfEvents,
  'large answers': largeAnswers,
  'unread answers': unreadAnswers,
  'silent sockets': silentSockets,
  'streams left early': streamsLeftEarly,
  'requests left early': requestsLeftEarly,
  'polls, streams and calls': pollsStreamsAndCalls,
  'unknown taxpayers': unknownTaxpayers,
  'log lines': logLines,
  refusals,
};

/** Documents that are never repeated, over every transport. */
async function documents(target, over) {
  const socket = await openSocket(target);
  await repeat(over, 20, (n) => {
    const fields = sixty((m) => `a${n}_${m}_${'x'.repeat(150)}: __typename`);
    subscribe(socket, `${n}`, { query: `query ${fields}` });
    post(target, { query: `query A ${fields}` });
    post(target, { query: 'query ($x: ID) { __typename }', variables: { x: Array(60_000).fill([]), n } });
    stream(target, `query B ${fields}`);
  });
  socket.terminate();
}

const deepTokens = Array.from({ length: 55 }, (_, n) => `a${n}: token { ...T4 }`).join(' ');
/** Fifty fields of a token's record, in five levels. */
const deepFragments = Array.from({ length: 5 }, (_, n) => {
  const fields = 'taxpayerId name status provider providerId createdAt metadata fetchedAt stale';
  return `fragment T${n} on TaxpayerToken { ${fields} ${n === 0 ? '' : `taxpayer { token { ...T${n - 1} } }`} }`;
}).join(' ');

/** Short documents that expand to very many fields. Each is repeated, so that the gateway makes a plan of it. */
async function fieldsThroughFragments(target, over) {
  await repeat(over, 0, async (n) => {
    for (const directive of ['', '@include(if: true)']) {
      const query = `query Q${n}($r: [_Any!]!) { _entities(representations: $r) ${directive} { ... on Taxpayer { ${deepTokens} } } } ${deepFragments}`;
      for (const count of [1, 1, 200]) {
        const r = Array(count).fill({ __typename: 'Taxpayer', id: target.heavy });
        post(target, { query, variables: { r } });
        await delay(10);
      }
    }
  });
}

/** Subscriptions to thousands of fields, each left after its first event and begun again. */
async function fieldsOfEvents(target, over) {
  const { taxpayerId } = target.jobs[0];
  const query = `subscription { taxpayerTokenUpdated(taxpayerId: "${taxpayerId}") { taxpayer { ${deepTokens} } } } ${deepFragments}`;
  const socket = await openSocket(target);
  socket.on('message', (data) => {
    const { id, type } = JSON.parse(data);
    if (type === 'next') socket.send(JSON.stringify({ id, type: 'complete' }));
  });
  await repeat(over, 10, (n) => subscribe(socket, `${n}`, { query }));
  socket.terminate();
}

/** Small requests for answers of hundreds of megabytes. */
async function largeAnswers(target, over) {
  const all = { query: sixty((n) => `a${n}: ${heavyField(target)}`) };
  const entities = '_entities(representations: $r) { ... on TaxpayerToken { metadata } }';
  const query = `query ($r: [_Any!]!) ${sixty((n) => `a${n}: ${entities}`)}`;
  const r = Array(200).fill({ __typename: 'TaxpayerToken', taxpayerId: target.heavy });
  await repeat(over, 50, () => {
    post(target, all);
    post(target, { query, variables: { r } });
  });
}

/** Answers as large as allowed that nobody reads, over plain HTTP and over a socket. */
async function unreadAnswers(target, over) {
  const query = `{ ${Array.from({ length: 7 }, (_, n) => `a${n}: ${heavyField(target)}`).join(' ')} }`;
  const open = [];
  await repeat(over, 100, async () => {
    const socket = await openSocket(target);
    subscribe(socket, '1', { query });
    if (socket.readyState === socket.OPEN) socket.pause();
    open.push(post(target, { query }, { agent: false, read: () => {} }), { destroy: () => socket.terminate() });
    if (open.length > 200) open.shift().destroy();
  });
  for (const each of open) each.destroy();
}

/** Sockets that send much data but never authenticate. */
async function silentSockets(target, over) {
  const open = new Set();
  await repeat(over, 5, () => {
    const socket = socketThatSends(target, 'x'.repeat(200_000));
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  for (const socket of open) socket.terminate();
}

/** Event streams whose client leaves before its token is verified. */
async function streamsLeftEarly(target, over) {
  const tokens = target.freshAuthorizations;
  await repeat(over, 5, (n) => {
    const leaving = stream({ ...target, authorization: tokens[n % tokens.length] }, watchQuery(target, n));
    leaving.on('socket', (socket) => socket.once('connect', () => setImmediate(() => leaving.destroy())));
  });
}

/** Connections that send more requests in one packet than the gateway lets wait, so that it ends them. */
async function requestsLeftEarly({ origin }, over) {
  const { hostname, port } = new URL(origin);
  const text = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20);
  const one = async () => {
    const socket = connect(port, hostname)
      .on('error', () => {})
      .resume();
    socket.end(text);
    await once(socket, 'close');
  };
  await Promise.all(Array.from({ length: 16 }, () => repeat(over, 5, one)));
}

/** Long polls, event streams, and queries that cause calls to the service. */
async function pollsStreamsAndCalls(target, over) {
  const open = [];
  await repeat(over, 10, (n) => {
    const { taxpayerId, jobId } = target.jobs[n % target.jobs.length];
    const job = (m, id, more = '') =>
      `a${m}: refreshJob(taxpayerId: "${taxpayerId}", jobId: "${id}"${more}) { status }`;
    post(target, { query: sixty((m) => job(m, jobId, `, waitSeconds: ${30 + ((n + m) % 200)}`)) });
    post(target, { query: sixty((m) => job(m, `made-up-${n}-${m}`)) });
    open.push(stream(target, watchQuery(target, n)));
  });
  for (const each of open) each.destroy();
}

/** An endless supply of taxpayers, each of which costs a call to the token endpoint. */
function unknownTaxpayers(target, over) {
  return repeat(over, 20, (n) =>
    post(target, { query: sixty((m) => `a${m}: taxpayerToken(taxpayerId: "nobody-${n}-${m}") { status }`) }),
  );
}

/** Errors that might each write a log line, while nobody reads the log. */
function logLines(target, over) {
  const nested = `{"type":"ping","payload":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  return repeat(over, 5, () => {
    const socket = socketThatSends(target, nested);
    setTimeout(() => socket.terminate(), 1000);
    post({ ...target, authorization: 'Bearer made.up.token' }, { query: '{ __typename }' });
  });
}

/** Calls `act` until `over`, with numbers that no other run of an attack uses, for documents and ids that are never repeated. */
async function repeat(over, everyMs, act) {
  runs += 1;
  for (let n = runs * 1_000_000; !over.aborted; n += 1) {
    await act(n);
    await delay(everyMs);
  }
}

function newAgent() {
  return new Agent({ keepAlive: true, maxSockets: 64 });
}

function sixty(field) {
  return `{ ${Array.from({ length: 60 }, (_, n) => field(n)).join(' ')} }`;
}

function heavyField({ heavy }) {
  return `taxpayerToken(taxpayerId: "${heavy}") { metadata }`;
}

function watchQuery({ jobs }, n) {
  const { taxpayerId, jobId } = jobs[n % jobs.length];
  return `subscription { refreshJobUpdated(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status } }`;
}

/** Sends an operation and discards its answer, unless `more` says otherwise. */
function post(target, operation, more) {
  return send(target, '/graphql', operation, more);
}

function stream(target, query) {
  return send(target, '/graphql/stream', { query }, { accept: 'text/event-stream', agent: false });
}

function send(
  { origin, authorization },
  path,
  operation,
  { accept = 'application/json', read = discard, ...options } = {},
) {
  const headers = { authorization, accept, 'content-type': 'application/json' };
  const sent = request(`${origin}${path}`, { method: 'POST', agent, ...options, headers });
  sent.on('error', () => {});
  sent.on('response', (response) => read(response.on('error', () => {})));
  sent.end(JSON.stringify(operation));
  return sent;
}

function discard(response) {
  response.resume();
}

/** A socket that never authenticates. */
function socketThatSends({ url }, text) {
  const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws');
  socket.on('error', () => {});
  socket.on('open', () => socket.send(text));
  return socket;
}
