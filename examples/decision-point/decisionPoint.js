// A decision point for development and tests: it speaks the OpenID AuthZEN Authorization API 1.0 and decides by lists in a
// file, `{ "<subject>": ["<taxpayer id>"] }`. The file is read for each call, so an edit takes effect at once.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

/** The answer to a request for one evaluation, or for several; undefined for a request that is malformed. */
export function decide(request, lists) {
  const { evaluations = [], ...common } = request;
  const isOne = evaluations.length === 0;
  const all = isOne ? [common] : evaluations.map((each) => ({ ...common, ...each }));
  if (!all.every(isWhole)) return undefined;
  const decisions = all.map(({ subject, resource }) => ({
    decision:
      resource.type === 'taxpayer' && Object.hasOwn(lists, subject.id) && lists[subject.id].includes(resource.id),
  }));
  return isOne ? decisions[0] : { evaluations: decisions };
}

/** Serves on loopback; `port` 0 picks a free one. With a `token`, only requests with this token are answered. */
export async function startDecisionPoint({ listsFile, port = 0, token }) {
  const server = createServer(async (request, response) => {
    const [status, answer] = await answerTo(request, listsFile, token).catch(() => [500, 'the lists cannot be read']);
    const headers = { 'content-type': 'application/json' };
    if (request.headers['x-request-id']) headers['x-request-id'] = request.headers['x-request-id'];
    response.writeHead(status, headers).end(JSON.stringify(answer));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

async function answerTo(request, listsFile, token) {
  const endpoint = /^\/access\/v1\/evaluations?$/.exec(request.url);
  if (!endpoint) return [404, 'no such endpoint'];
  if (request.method !== 'POST') return [405, 'expected POST'];
  if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) return [401, 'expected the token'];
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const lists = JSON.parse(await readFile(listsFile, 'utf8'));
  try {
    const answer = decide(JSON.parse(Buffer.concat(chunks)), lists);
    if (answer !== undefined) return [200, answer];
  } catch {
    // Not JSON, or not an object.
  }
  return [400, 'expected subject, action and resource'];
}

function isWhole({ subject, action, resource }) {
  const texts = [subject?.type, subject?.id, action?.name, resource?.type, resource?.id];
  return texts.every((text) => typeof text === 'string');
}
