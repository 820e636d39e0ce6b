// The attacks of a hostile caller, one function each. Each is given the target and runs until `over` aborts. Whether an attack
// reads, awaits or ignores the answers is part of it.

import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { openSocket } from '../caller.js';
import { refusals } from './refusals.js';

let agent = newAgent();
let runs = 0;

/** Aborts every request that is not answered yet. */
export function hangUp() {
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
  'reserved streams': reservedStreams,
  'polls, streams and calls': pollsStreamsAndCalls,
  'unknown taxpayers': unknownTaxpayers,
  'log lines': logLines,
  refusals,
};

/** Documents that are never repeated, over every transport. */
async function documents(target, over) {
  const socket = await openSocket(target);
  for (let n = unusedNumber(); !over.aborted; n += 1) {
    const query = `query { ${uniqueAliases(n)} }`;
    if (socket.readyState === socket.OPEN) {
      socket.send(JSON.stringify({ id: `${n}`, type: 'subscribe', payload: { query } }));
    }
    post(target, { query: `query A { ${uniqueAliases(n)} }` });
    post(target, { query: 'query ($x: ID) { __typename }', variables: { x: Array(60_000).fill([]), n } });
    stream(target, `query B { ${uniqueAliases(n)} }`);
    await delay(20);
  }
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
  for (let n = unusedNumber(); !over.aborted; n += 1) {
    for (const directive of ['', '@include(if: true)']) {
      const query = `query Q${n}($r: [_Any!]!) { _entities(representations: $r) ${directive} { ... on Taxpayer { ${deepTokens} } } } ${deepFragments}`;
      for (const count of [6, 6, 200]) {
        const r = Array(count).fill({ __typename: 'Taxpayer', id: target.heavy });
        post(target, { query, variables: { r } });
        await delay(10);
      }
    }
  }
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
  for (let n = unusedNumber(); !over.aborted && socket.readyState === socket.OPEN; n += 1) {
    socket.send(JSON.stringify({ id: `${n}`, type: 'subscribe', payload: { query } }));
    await delay(10);
  }
  socket.terminate();
}

/** Small requests for answers of hundreds of megabytes. */
async function largeAnswers(target, over) {
  const aliases = (field) => `{ ${Array.from({ length: 60 }, (_, n) => `a${n}: ${field}`).join(' ')} }`;
  const all = { query: aliases(`taxpayerToken(taxpayerId: "${target.heavy}") { metadata }`) };
  const representations = Array(200).fill({ __typename: 'TaxpayerToken', taxpayerId: target.heavy });
  const entities = {
    query: `query ($r: [_Any!]!) ${aliases('_entities(representations: $r) { ... on TaxpayerToken { metadata } }')}`,
    variables: { r: representations },
  };
  while (!over.aborted) {
    post(target, all);
    post(target, entities);
    await delay(50);
  }
}

/** Answers as large as allowed that nobody reads, over plain HTTP and over a socket. */
async function unreadAnswers(target, over) {
  const query = `{ ${Array.from({ length: 7 }, (_, n) => `a${n}: taxpayerToken(taxpayerId: "${target.heavy}") { metadata }`).join(' ')} }`;
  const open = [];
  while (!over.aborted) {
    open.push(unreadPost(target, { query }));
    const socket = await openSocket(target);
    if (socket.readyState === socket.OPEN) {
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
      socket.pause();
    }
    open.push({ destroy: () => socket.terminate() });
    if (open.length > 200) open.shift().destroy();
    await delay(100);
  }
  for (const each of open) each.destroy();
}

/** Sockets that send much data but never authenticate. */
async function silentSockets(target, over) {
  const open = new Set();
  while (!over.aborted) {
    const socket = new WebSocket(target.url.replace('http', 'ws'), 'graphql-transport-ws');
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
    socket.on('open', () => socket.send('x'.repeat(200_000)));
    await delay(5);
  }
  for (const socket of open) socket.terminate();
}

/** Event streams whose client leaves before its token is verified. */
async function streamsLeftEarly(target, over) {
  for (let n = 0; !over.aborted; n += 1) {
    const authorization = target.freshAuthorizations[n % target.freshAuthorizations.length];
    const leaving = stream({ ...target, authorization }, watchQuery(target, n));
    leaving.on('socket', (socket) => socket.once('connect', () => setImmediate(() => leaving.destroy())));
    await delay(5);
  }
}

/** PUT requests, by which the removed single-connection mode reserved streams. */
async function reservedStreams(target, over) {
  while (!over.aborted) {
    send(target, 'PUT', '/graphql/stream');
    await delay(5);
  }
}

/** Long polls, event streams, and queries that cause calls to the service. */
async function pollsStreamsAndCalls(target, over) {
  const open = [];
  for (let n = unusedNumber(); !over.aborted; n += 1) {
    const { taxpayerId, jobId } = target.jobs[n % target.jobs.length];
    post(target, { query: aliasesOf((m) => jobField(taxpayerId, jobId, `, waitSeconds: ${30 + ((n + m) % 200)}`)) });
    post(target, { query: aliasesOf((m) => jobField(taxpayerId, `made-up-${n}-${m}`)) });
    open.push(stream(target, watchQuery(target, n)));
    await delay(10);
  }
  for (const each of open) each.destroy();
}

/** An endless supply of taxpayers, each of which costs a call to the token endpoint. */
async function unknownTaxpayers(target, over) {
  for (let n = unusedNumber(); !over.aborted; n += 1) {
    post(target, { query: aliasesOf((m) => `taxpayerToken(taxpayerId: "nobody-${n}-${m}") { status }`) });
    await delay(20);
  }
}

/** Errors that might each write a log line, while nobody reads the log. */
async function logLines(target, over) {
  const nested = `{"type":"ping","payload":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  while (!over.aborted) {
    const socket = new WebSocket(target.url.replace('http', 'ws'), 'graphql-transport-ws');
    socket.on('error', () => {});
    socket.on('open', () => socket.send(nested));
    post({ ...target, authorization: 'Bearer made.up.token' }, { query: '{ __typename }' });
    await delay(5);
    setTimeout(() => socket.terminate(), 1000);
  }
}

/** The first of a million numbers that no run of an attack has used, for documents and ids that are never repeated. */
function unusedNumber() {
  runs += 1;
  return runs * 1_000_000;
}

function newAgent() {
  return new Agent({ keepAlive: true, maxSockets: 64 });
}

function aliasesOf(field) {
  return `{ ${Array.from({ length: 60 }, (_, n) => `a${n}: ${field(n)}`).join(' ')} }`;
}

function uniqueAliases(n) {
  return Array.from({ length: 60 }, (_, m) => `a${n}_${m}_${'x'.repeat(150)}: __typename`).join(' ');
}

function jobField(taxpayerId, jobId, more = '') {
  return `refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}"${more}) { status }`;
}

function watchQuery({ jobs }, n) {
  const { taxpayerId, jobId } = jobs[n % jobs.length];
  return `subscription { refreshJobUpdated(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status } }`;
}

/** Sends an operation and discards its answer. */
function post(target, operation) {
  return send(target, 'POST', '/graphql', JSON.stringify(operation));
}

function stream(target, query) {
  return send(target, 'POST', '/graphql/stream', JSON.stringify({ query }), {
    accept: 'text/event-stream',
    agent: false,
  });
}

function send({ origin, authorization }, method, path, body, { accept = 'application/json', agent: via = agent } = {}) {
  const headers = { authorization, accept, ...(body !== undefined && { 'content-type': 'application/json' }) };
  const sent = request(`${origin}${path}`, { method, headers, agent: via });
  sent.on('error', () => {});
  sent.on('response', (response) => response.on('error', () => {}).resume());
  sent.end(body);
  return sent;
}

/** Sends an operation and never reads its answer. */
function unreadPost({ origin, authorization }, operation) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const body = JSON.stringify(operation);
  socket.on('error', () => {});
  socket.pause();
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return socket;
}
