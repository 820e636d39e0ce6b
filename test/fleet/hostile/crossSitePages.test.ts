import { createServer } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser } from '../../support/browser.js';
import { spawnGateway, startTestGateway, type TestGateway, type Texts } from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';
import { serve } from '../../support/serve.js';

// A page of another origin in a real browser, and a gateway that needs no token. Calls of the service show what is executed.

let pageOrigin: string;
let allowing: TestGateway;
let gateway: TestGateway;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  const pages = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>another page</title>');
  });
  pageOrigin = await serve(pages);
  gateway = await startTestGateway();
  allowing = await startTestGateway({ CORS_ORIGINS: `${pageOrigin},https://app.example` });
  browser = await launchBrowser();
  page = await browser.newPage();
  await page.goto(pageOrigin);
}, 60_000);

const callsOf = ({ sandbox }: TestGateway) => sandbox.counters().taxpayerToken;

function addressOf({ origin, sandbox }: TestGateway, path = '/graphql/stream') {
  const { id } = sandbox.addTaxpayer();
  return `${origin}${path}?${new URLSearchParams({ query: `{ taxpayerToken(taxpayerId: "${id}") { status } }` })}`;
}

describe('a page of another origin', () => {
  /** Each resolves when the browser has its answer, whatever that is. */
  const ways: Texts = {
    'an image': `new Promise((resolve) => {
      const image = new Image();
      image.onload = image.onerror = resolve;
      image.src = address;
    })`,
    'a script': `new Promise((resolve) => {
      const script = document.createElement('script');
      script.onload = script.onerror = resolve;
      script.src = address;
      document.head.append(script);
    })`,
    'a frame': `new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = resolve;
      frame.src = address;
      document.body.append(frame);
    })`,
    'a fetch whose answer it may not see': `fetch(address, { mode: 'no-cors', headers: { accept: 'text/event-stream' } }).catch(() => {})`,
    'a fetch that names a type as forms do': `fetch(address, { mode: 'no-cors', headers: { 'content-type': 'text/plain' } }).catch(() => {})`,
    'an EventSource': `new Promise((resolve) => { new EventSource(address).onerror = resolve; })`,
  };

  it.each(Object.entries(ways))('executes nothing by %s', async (_, way) => {
    const before = callsOf(gateway);
    for (const path of ['/graphql/stream', '/graphql']) {
      await page.evaluate(`((address) => ${way})(${JSON.stringify(addressOf(gateway, path))})`);
    }
    expect(callsOf(gateway) - before).toBe(0);
  });

  async function expectEvent(reader: Page, address: string) {
    const data = await reader.evaluate(
      `new Promise((resolve) => {
        const source = new EventSource(${JSON.stringify(address)});
        source.addEventListener('next', ({ data }) => resolve(data));
        source.addEventListener('complete', () => source.close());
      })`,
    );
    expect(JSON.parse(data as string)).toEqual({ data: { taxpayerToken: { status: 'CREATED' } } });
  }

  it('that CORS_ORIGINS names gets events by an EventSource', async () => {
    await expectEvent(page, addressOf(allowing));
    expect(callsOf(allowing)).toBe(1);
  });

  it('that is our own gets them as well', async () => {
    const own = await browser.newPage();
    await own.goto(`${gateway.origin}/graphiql`);
    await expectEvent(own, addressOf(gateway).replace(gateway.origin, ''));
    await own.close();
  });
});

describe('a page that CORS_ORIGINS names', () => {
  const mayRead = async (origin: string) => {
    const { headers, status } = await fetch(`${allowing.origin}/graphql`, { method: 'POST', headers: { origin } });
    return [status, headers.get('access-control-allow-origin'), headers.get('access-control-expose-headers')];
  };

  it('may read the request id and when to come back', async () => {
    expect(await mayRead('https://app.example')).toEqual([415, 'https://app.example', 'x-request-id,retry-after']);
  });

  it.each([
    'https://app.example.evil.example',
    'https://app.example:8443',
    'http://app.example',
    'https://app.exampl',
    'https://app.example\u009b', // begins an ANSI sequence
  ])('is not meant by an origin that is nearly the same, which is logged in plain characters: %j', async (origin) => {
    expect(await mayRead(origin)).toEqual([415, null, null]);
    expect(allowing.output()).not.toContain('\u009b');
  });
});

it.each([
  ['text/event-stream', 200, 1],
  ['*/*', 400, 0],
])('a GET of no browser that accepts %s gets %s', async (accept, ...expected) => {
  const before = callsOf(gateway);
  const { status } = await fetch(addressOf(gateway), { headers: { accept } });
  expect([status, callsOf(gateway) - before]).toEqual(expected);
});

describe('an app in a web view, or a browser extension, whose origin has a scheme of its own', () => {
  const origins = ['capacitor://localhost', 'chrome-extension://abcdefghijklmnopabcdefghijklmnop'];
  let named: TestGateway;
  beforeAll(async () => {
    named = await startTestGateway({ CORS_ORIGINS: origins.join() });
  });

  it.each(origins)('may call and open streams when CORS_ORIGINS names it: %s', async (origin) => {
    const preflight = { origin, 'access-control-request-method': 'POST' };
    const asked = await fetch(`${named.origin}/graphql`, { method: 'OPTIONS', headers: preflight });
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    for (const [target, status] of [
      [named, 200],
      [gateway, 403],
    ] as const) {
      const headers = { origin, accept: 'text/event-stream' };
      const stream = await fetch(addressOf(target), { headers });
      expect(stream.status).toBe(status);
      await stream.body?.cancel();
    }
  });
});

describe('a page of another origin on this machine', () => {
  const preflight = (to: { readonly origin: string }, origin: string) =>
    fetch(`${to.origin}/graphql`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    }).then(({ headers, status }) => (status < 500 ? headers.get('access-control-allow-origin') : status));

  it('may ask in developer mode, and no other', async () => {
    const developers = await spawnGateway({ PORT: '0' });

    for (const origin of [
      'http://localhost:3000',
      'https://app.localhost',
      'http://127.0.0.1:5173',
      'http://[::1]:1',
    ]) {
      expect([origin, await preflight(developers, origin)]).toEqual([origin, origin]);
      expect(await preflight(gateway, origin)).toBeNull();
    }
    for (const origin of ['https://localhost.evil.example', 'https://evil.example', 'null', 'http://evil-localhost']) {
      expect([origin, await preflight(developers, origin)]).toEqual([origin, null]);
    }
  });

  it('is told in the log once how it may, where it may not', async () => {
    const origin = 'http://localhost:4711';
    for (let n = 0; n < 2; n += 1) await rawSocket(gateway.origin, { headers: { origin } }).refused();
    expect(gateway.logs.filter((line) => line.includes(origin))).toEqual([expect.stringContaining('set CORS_ORIGINS')]);
    for (let n = 0; n < 30; n += 1) await preflight(gateway, `https://${n}.example`);
    expect(gateway.logs.filter((line) => line.includes('set CORS_ORIGINS'))).toHaveLength(20);
  });
});
