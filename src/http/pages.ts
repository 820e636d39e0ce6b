import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { notKept, writePage } from './answering.js';
import type { Handler, Routes } from './HttpServer.js';

export interface ExplorerOptions {
  /** The explorer's tabs. */
  readonly operations: readonly string[];
  /** Request headers that it starts with; called each time it is opened. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
}

/** The pages of both explorers, by their path. */
export function explorerRoutes(options: ExplorerOptions): Routes {
  return [
    ['/', apolloSandboxPage(options)],
    ['/graphiql', graphiqlPage()],
    ['/graphiql/options', graphiqlOptions(options)],
  ];
}

/** `/graphql` opened in a browser leads to the explorer. */
export function orExplorer(handler: Handler): Handler {
  return (request, response) => {
    const { method, url, headers } = request;
    if (method !== 'GET' || url !== '/graphql' || !headers.accept?.includes('text/html'))
      return handler(request, response);
    response.writeHead(303, ['location', '/graphiql']).end();
  };
}

/** Apollo's hosted code, which the page at `/` embeds; `/graphiql` is for machines without internet. */
const sandboxOrigins = ['https://embeddable-sandbox.cdn.apollographql.com', 'https://sandbox.embed.apollographql.com'];

/** `/`: Apollo Sandbox, pointed at this gateway. */
function apolloSandboxPage({ operations, headers }: ExplorerOptions): Handler {
  return async (request, response) => {
    if (!isRead(request, response)) return;
    const nonce = crypto.getRandomValues(Buffer.alloc(16)).toString('base64');
    const initialState = { document: operations[0], headers: await headers(), pollForSchemaUpdates: false };
    const csp = policy({
      'script-src': [`'nonce-${nonce}'`, ...sandboxOrigins],
      'frame-src': sandboxOrigins,
      'style-src': ["'unsafe-inline'", ...sandboxOrigins],
      'img-src': ["'self'", 'data:', 'https:'],
      'connect-src': ["'self'", ...sandboxOrigins],
      'manifest-src': ['https:'],
    });
    const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Taxpayer gateway · Apollo Sandbox</title>
<style>html,body,#sandbox{height:100%;margin:0}p{font:16px/1.5 system-ui;margin:2rem}iframe{border:0;width:100%;height:100%}</style>
<div id="sandbox"><p>Loading Apollo Sandbox from the internet. If nothing appears, use <a href="/graphiql">GraphiQL</a>, which works offline.</p></div>
<script nonce="${nonce}" src="${sandboxOrigins[0]}/_latest/embeddable-sandbox.umd.production.min.js"></script>
<script nonce="${nonce}">
  if (window.EmbeddedSandbox) {
    document.getElementById('sandbox').textContent = '';
    new window.EmbeddedSandbox({
      target: '#sandbox',
      initialEndpoint: location.origin + '/graphql',
      initialSubscriptionEndpoint: location.origin.replace(/^http/, 'ws') + '/graphql',
      initialState: ${forScript(initialState)},
      runTelemetry: false,
    });
  }
</script>
</html>
`;
    writePage(response, 200, 'text/html; charset=utf-8', html, [...notKept, 'content-security-policy', csp]);
  };
}

/** `/graphiql`: an explorer whose every byte comes from this process. It is made and compressed by `scripts/build.js`. */
function graphiqlPage(): Handler {
  const csp = policy({
    'script-src': ["'self'", "'unsafe-inline'", "'unsafe-eval'", 'blob:', 'data:'],
    'worker-src': ['blob:', 'data:', "'self'"],
    'style-src': ["'self'", "'unsafe-inline'", 'data:'],
    'font-src': ["'self'", 'data:'],
    'img-src': ["'self'", 'data:'],
    'connect-src': ["'self'", 'data:', 'blob:'],
  });
  let reading: Promise<{ readonly page: Buffer; readonly tag: string }> | undefined;
  return async (request, response) => {
    if (!isRead(request, response)) return;
    reading ??= readExplorer();
    const { page, tag } = await reading;
    const headers = ['cache-control', 'no-cache', 'etag', tag, 'content-security-policy', csp];
    if (request.headers['if-none-match'] === tag) response.writeHead(304, headers).end();
    else writePage(response, 200, 'text/html; charset=utf-8', page, [...headers, 'content-encoding', 'gzip']);
  };
}

async function readExplorer() {
  const root = dirname(createRequire(import.meta.url).resolve('taxpayer-gateway/package.json'));
  const page = await readFile(join(root, 'dist/explorer.html.gz'));
  return { page, tag: `"${hash('sha256', page)}"` };
}

/** What `/graphiql` begins with. JSON, which pages of other origins cannot read: it may hold a token. */
function graphiqlOptions({ operations, headers }: ExplorerOptions): Handler {
  return async (request, response) => {
    if (!isRead(request, response)) return;
    const shown = JSON.stringify(await headers(), null, 2);
    const tabs = operations.map((query) => ({ query, headers: shown }));
    const options = { title: 'Taxpayer gateway', endpoint: '/graphql', headers: shown, defaultTabs: tabs };
    const all = JSON.stringify({ ...options, subscriptionsProtocol: 'WS' });
    writePage(response, 200, 'application/json', all);
  };
}

function isRead(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return true;
  response.writeHead(405, ['allow', 'GET, HEAD', 'content-type', 'text/plain; charset=utf-8']).end('Use GET\n');
  return false;
}

/** The Content-Security-Policy of a page that may load what `sources` name. */
function policy(sources: Readonly<Record<string, readonly string[]>>): string {
  const nothing = ['default-src', 'base-uri', 'form-action', 'frame-ancestors'].map((name) => `${name} 'none'`);
  return [...nothing, ...Object.entries(sources).map(([name, from]) => [name, ...from].join(' '))].join('; ');
}

/** JSON that cannot end the script element it stands in. */
function forScript(value: unknown): string {
  return JSON.stringify(value).replace(/</g, '\\u003c');
}
