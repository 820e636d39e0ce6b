// Baseline: the lower bound of the costs. No GraphQL, only node:http: it recognizes the benchmark's queries by their text and
// caches the caller of each token. It shares its data cache with other baselines. No GraphQL server can be faster.

import { createServer } from 'node:http';
import { hotToken, jobStatus } from '../queries.js';
import { CachedService } from './CachedService.js';
import { listen, options } from './listening.js';
import { callerVerifier } from './verifyCaller.js';

const verifyCaller = callerVerifier(options);
const service = new CachedService(options);
/** The same number as in the gateway. */
const maxCallers = 10_000;
const callers = new Map();

const answers = new Map([
  [hotToken, answerHotToken],
  [jobStatus, answerJobStatus],
]);

listen(createServer(serve));

function serve(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    try {
      const caller = await callerOf(request.headers.authorization);
      const { query, variables } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
      const answer = answers.get(query) ?? aliasesAnswerer(query);
      if (!answer) return send(response, 400, { errors: [{ message: 'Not a query of the benchmark' }] });
      send(response, 200, { data: await answer(variables, caller) });
    } catch (error) {
      send(response, error.extensions?.http?.status ?? 200, { errors: [{ message: error.message }] });
    }
  });
}

function callerOf(authorization) {
  const known = callers.get(authorization);
  if (known) return known;
  return verifyCaller(authorization).then((caller) => {
    if (callers.size === maxCallers) callers.delete(callers.keys().next().value);
    callers.set(authorization, caller);
    return caller;
  });
}

async function answerHotToken({ id }, caller) {
  caller.require('taxpayers:read', id);
  const token = await service.token(id);
  if (!token) return { taxpayerToken: null };
  const { taxpayerId, name, status, provider, createdAt, fetchedAt, stale } = token;
  return { taxpayerToken: { taxpayerId, name, status, provider, createdAt, fetchedAt, stale } };
}

async function answerJobStatus({ taxpayerId, jobId }, caller) {
  caller.require('refresh-jobs:read', taxpayerId);
  return { refreshJob: await service.job(taxpayerId, jobId) };
}

/** Parses the aliases of each document once; the n-th field asks for the n-th pair of variables. */
function aliasesAnswerer(query) {
  if (!query.startsWith('query JobAliases')) return undefined;
  const aliases = [...query.matchAll(/^ {2}(\w+): refreshJob/gm)].map(([, alias]) => alias);
  const answer = async (variables, caller) => {
    const found = aliases.map((_, n) => {
      caller.require('refresh-jobs:read', variables[`t${n}`]);
      return service.job(variables[`t${n}`], variables[`j${n}`]);
    });
    const data = {};
    for (const [n, alias] of aliases.entries()) {
      const job = await found[n];
      data[alias] = job && { jobId: job.jobId, name: job.name, status: job.status, observedAt: job.observedAt };
    }
    return data;
  };
  answers.set(query, answer);
  return answer;
}

function send(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}
