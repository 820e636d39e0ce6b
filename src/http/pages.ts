import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { notCached, writeBody } from './answering.js';
import type { Handler, Routes } from './HttpServer.js';

/** The pages of both explorers, by their path. With `needsToken` they start with a header that has a placeholder for one. */
export function explorerRoutes(operations: readonly string[], needsToken: boolean): Routes {
  return {
    '/': pageOf('sandbox', apolloSandbox),
    '/graphiql': pageOf('explorer', graphiql),
    '/graphiql/options': optionsOf(operations, needsToken),
  };
}

/** `/graphql` opened in a browser leads to the explorer. */
export function orExplorer(handler: Handler): Handler {
  return (request, response) => {
    const { method, url, headers } = request;
    if (method !== 'GET' || url !== '/graphql' || !headers.accept?.includes('text/html'))
      return handler(request, response);
    response.writeHead(303, ['location', '/graphiql', ...notCached]).end();
  };
}

const closed = ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"];
const hosts = 'https://embeddable-sandbox.cdn.apollographql.com https://sandbox.embed.apollographql.com';
/** What `/` may load: Apollo's hosted code, embedded. Both pages are the same for everybody, so their scripts need no nonce. */
const apolloSandbox = [
  ...closed,
  `script-src 'unsafe-inline' ${hosts}`,
  `frame-src ${hosts}`,
  `style-src 'unsafe-inline' ${hosts}`,
  "img-src 'self' data: https:",
  `connect-src 'self' ${hosts}`,
  'manifest-src https:',
];
/** What `/graphiql` may load: every byte comes from this process, so it works without internet. */
const graphiql = [
  ...closed,
  "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:",
  "worker-src 'self' blob: data:",
  "style-src 'self' 'unsafe-inline' data:",
  "font-src 'self' data:",
  "img-src 'self' data:",
  "connect-src 'self' data: blob:",
];

/** A page that `scripts/build.js` has made and compressed. */
function pageOf(name: string, policy: readonly string[]): Handler {
  const csp = policy.join('; ');
  let built: Awaited<ReturnType<typeof readBuilt>> | undefined;
  return async (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const hint = 'Operations are on /graphql\n';
      return writeBody(response, 405, 'text/plain; charset=utf-8', hint, [...notCached, 'allow', 'GET, HEAD']);
    }
    built ??= await readBuilt(`dist/${name}.html.gz`);
    const { page, tag } = built;
    const headers = ['cache-control', 'no-cache', 'etag', tag, 'content-security-policy', csp];
    if (request.headers['if-none-match'] === tag) response.writeHead(304, headers).end();
    else writeBody(response, 200, 'text/html; charset=utf-8', page, [...headers, 'content-encoding', 'gzip']);
  };
}

async function readBuilt(path: string) {
  const root = dirname(createRequire(import.meta.url).resolve('taxpayer-gateway/package.json'));
  const page = await readFile(join(root, path));
  return { page, tag: `"${hash('sha256', page)}"` };
}

/** What the explorers begin with. */
function optionsOf(operations: readonly string[], needsToken: boolean): Handler {
  const headers = needsToken
    ? '{\n  "Authorization": "Bearer <put an access token here, then fetch the schema again>"\n}'
    : '{}';
  const defaultTabs = operations.map((query) => ({ query, headers }));
  const options = { title: 'Taxpayer gateway', endpoint: '/graphql', subscriptionsProtocol: 'SSE' };
  const body = JSON.stringify({ ...options, headers, defaultTabs });
  return (_, response) => writeBody(response, 200, 'application/json', body);
}
