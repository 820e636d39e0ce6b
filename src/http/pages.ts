import type { IncomingMessage, ServerResponse } from 'node:http';
import { writePage } from './answering.js';
import type { Handler } from './HttpServer.js';

export interface ExplorerOptions {
  readonly firstQuery: string;
  /** Request headers that the explorer starts with; called each time the page is opened. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
}

/** Apollo's hosted code, which the page at `/` embeds; `/graphiql` is for machines without internet. */
const sandboxOrigins = ['https://embeddable-sandbox.cdn.apollographql.com', 'https://sandbox.embed.apollographql.com'];

/** `/`: Apollo Sandbox, pointed at this gateway. */
export function apolloSandboxPage(options: ExplorerOptions): Handler {
  return async (request, response) => {
    if (!isRead(request, response)) return;
    const nonce = crypto.getRandomValues(Buffer.alloc(16)).toString('base64');
    const headers = await options.headers();
    const initialState = { document: options.firstQuery, headers, pollForSchemaUpdates: false };
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
<div id="sandbox"><p>Apollo Sandbox is loaded from the internet. If this text stays, use the <a href="/graphiql">explorer that needs none</a>.</p></div>
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
    writePage(response, 200, 'text/html; charset=utf-8', html, csp);
  };
}

/** `/graphiql`: an explorer whose every byte comes from this process. Its code is loaded when the page is first opened. */
export function graphiqlPage(options: ExplorerOptions): Handler {
  // The page has megabytes, so all readers share one. It is made again when `headers` change: they hold a token.
  let latest: { readonly headers: string; readonly page: Buffer } | undefined;
  return async (request, response) => {
    if (!isRead(request, response)) return;
    const csp = policy({
      'script-src': ["'self'", "'unsafe-inline'", "'unsafe-eval'", 'blob:', 'data:'],
      'worker-src': ['blob:', 'data:', "'self'"],
      'style-src': ["'self'", "'unsafe-inline'", 'data:'],
      'font-src': ["'self'", 'data:'],
      'img-src': ["'self'", 'data:'],
      'connect-src': ["'self'", 'data:', 'blob:'],
    });
    const headers = JSON.stringify(await options.headers(), null, 2);
    if (latest?.headers !== headers) latest = { headers, page: await renderPage(options.firstQuery, headers) };
    writePage(response, 200, 'text/html; charset=utf-8', latest.page, csp);
  };
}

async function renderPage(defaultQuery: string, headers: string): Promise<Buffer> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const title = 'Taxpayer gateway · GraphiQL';
  const options = { title, endpoint: '/graphql', defaultQuery, headers, subscriptionsProtocol: 'WS' };
  return Buffer.from(renderGraphiQL(options as never));
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
