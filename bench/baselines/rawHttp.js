// Baseline: the lower bound of the costs. No GraphQL, only node:http: it recognizes the benchmark's queries by their text and
// caches the caller of each token. It caches data as mercuriusJit does. No GraphQL server can be faster.

import { createServer } from 'node:http';
import { hotToken, jobStatus } from '../queries.js';
import { CachedService } from './CachedService.js';
import { listen } from './listen.js';
import { verifyCaller } from './verifyCaller.js';

const service = new CachedService();
const callers = new Map();
const answers = new Map([
  [hotToken, answerHotToken],
  [jobStatus, answerJobStatus],
]);

listen(
  createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      try {
        const caller = await callerOf(request.headers.authorization);
        const { query, variables } = JSON.parse(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
        const answer = answers.get(query) ?? aliasesAnswerer(query);
        send(response, { data: await answer(variables, caller) });
      } catch (error) {
        send(response, { errors: [{ message: error.message }] });
      }
    });
  }),
);

function callerOf(authorization) {
  const known = callers.get(authorization);
  if (known) return known;
  return verifyCaller(authorization).then((caller) => {
    callers.set(authorization, caller);
    return caller;
  });
}

async function answerHotToken({ id }, caller) {
  caller.require('taxpayers:read', id);
  const { taxpayerId, name, status, provider, createdAt, fetchedAt, stale } = await service.token(id);
  return { taxpayerToken: { taxpayerId, name, status, provider, createdAt, fetchedAt, stale } };
}

async function answerJobStatus({ taxpayerId, jobId }, caller) {
  caller.require('refresh-jobs:read', taxpayerId);
  return { refreshJob: await service.job(taxpayerId, jobId) };
}

/** Parses the aliases of each document once; the n-th field asks for the n-th pair of variables. */
function aliasesAnswerer(query) {
  const aliases = [...query.matchAll(/^ {2}(\w+): refreshJob/gm)].map(([, alias]) => alias);
  const answer = async (variables, caller) => {
    const found = aliases.map((_, n) => {
      caller.require('refresh-jobs:read', variables[`t${n}`]);
      return service.job(variables[`t${n}`], variables[`j${n}`]);
    });
    const data = {};
    for (const [n, alias] of aliases.entries()) {
      const { jobId, name, status, observedAt } = await found[n];
      data[alias] = { jobId, name, status, observedAt };
    }
    return data;
  };
  answers.set(query, answer);
  return answer;
}

function send(response, body) {
  const text = JSON.stringify(body);
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}
