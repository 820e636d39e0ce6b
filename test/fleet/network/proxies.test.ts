import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { connect, type Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { Secret } from '../../../src/config/Secret.js';
import { Agents } from '../../../src/network/agents.js';
import { demoData } from '../../../src/sandbox/demoData.js';
import { atEnd } from '../../support/atEnd.js';
import { makeAuthority } from '../../support/certificate.js';
import { startCollector } from '../../support/collector.js';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import {
  codesOf,
  type Environment,
  environmentFor,
  startTestGateway,
  startTrustedProvider,
} from '../../support/gateway.js';
import { runCommand } from '../../support/runCommand.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';
import { startTlsFront } from '../../support/tlsFront.js';

const directory = scratch();
const authority = makeAuthority(directory, 'authority');
const server = authority.issue('server', 'DNS:service.test');
const link = 'mutation { createClientLink(input: {}) { replayed } }';
const token = `{ taxpayerToken(taxpayerId: "${demoData.taxpayerIds.authorized}") { status } }`;
const login = { user: 'gate way', password: 'planted:p@ss/word' };
const credentials = `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}`;

const service = await startSandbox();
const secured = await startTlsFront(service.url, server);

afterEach(() => {
  service.disarmAll();
  service.resetCounters();
});

/** By a name that only the proxy can resolve: what arrives came through it. */
const named = (url: string) => url.replace('127.0.0.1', 'service.test');

async function start(env: Environment) {
  const base = { UPSTREAM_BASE_URL: named(secured.url), UPSTREAM_CA_FILE: authority.certFile };
  return startTestGateway({ ...base, ...env });
}

type OnConnect = (socket: Socket, target: string, asked: IncomingMessage) => void;
const refuse: RequestListener = (_, response) => void response.writeHead(407).end('planted');

/** A proxy that does what the test says with each CONNECT, and with plain requests, which it refuses by default. */
async function startProxy(onConnect: OnConnect, onRequest = refuse) {
  const proxy: Server = createServer(onRequest);
  proxy.on('connect', (asked: IncomingMessage, socket: Socket) => {
    atEnd(() => socket.destroy());
    socket.on('error', () => {});
    onConnect(socket, asked.url ?? '', asked);
  });
  return serve(proxy);
}

/** Opens the tunnel to the service. */
function openTunnel(socket: Socket, target: string) {
  const onward = connect(Number(target.split(':')[1]), '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
  pipeline(socket, onward, socket, () => {}); // the end of one ends the other
}

/** For each connection that a proxy refused: resolves when it is closed. */
const refused: Promise<unknown>[] = [];

/** Keeps the connection open for another try, as Squid does. */
const answersWith =
  (status: string): OnConnect =>
  (socket) => {
    refused.push(new Promise((resolve) => socket.once('close', resolve)));
    socket.resume().once('end', () => socket.end());
    socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 7\r\n\r\nplanted`);
  };

describe('a proxy that', () => {
  test('wants a password is told it, by calls to the service, the key set, the decision point and the trace collector', async () => {
    const [provider, collector] = [await startTrustedProvider(), await startCollector()];
    const decisions = await startTestDecisionPoint();
    decisions.allow('unlisted', [demoData.taxpayerIds.authorized]);
    const known = `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`;
    const seen: string[] = [];
    const isKnown = ({ method, url, headers }: IncomingMessage) => {
      seen.push(`${method} ${url}`);
      return headers['proxy-authorization'] === known;
    };
    const proxy = await startProxy(
      (socket, target, asked) => (isKnown(asked) ? openTunnel(socket, target) : socket.destroy()),
      (asked, response) => {
        if (!isKnown(asked)) return refuse(asked, response);
        const { method, headers, url = '' } = asked;
        const onward = request(url.replace('service.test', '127.0.0.1'), { method, headers }, (answer) => {
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(response);
        });
        asked.pipe(onward);
      },
    );
    const withLogin = proxy.replace('//', `//${credentials}@`);
    const { gateway, query, output } = await start({
      ...provider.env,
      ...{ HTTPS_PROXY: withLogin, http_proxy: withLogin },
      AUTH_JWKS_URL: named(provider.jwksUrl),
      AUTH_DECISION_URL: named(decisions.url),
      OTEL_EXPORTER_OTLP_ENDPOINT: named(collector.url),
    });
    const scope = 'client-links:create taxpayers:read taxpayers:any';
    const authorization = await provider.watcherOf([], 300, scope);
    expect(codesOf(await query(link, {}, { authorization }))).toEqual([]);
    expect(codesOf(await query(token, {}, { authorization }))).toEqual([]);
    const unlisted = `Bearer ${await provider.token({ sub: 'unlisted', scope: 'taxpayers:read' })}`;
    expect(codesOf(await query(token, {}, { authorization: unlisted }))).toEqual([]);
    await gateway.stop(); // which sends the spans
    const paths = seen.map((line) => line.replace(/http:\/\/service\.test:\d+|:\d+/, ''));
    expect([...new Set(paths)].sort()).toEqual([
      'CONNECT service.test',
      'GET /jwks.json',
      'POST /pdp/access/v1/evaluation',
      'POST /v1/traces',
    ]);
    expect(output()).not.toMatch(/planted/);
  });

  test.each<[string, OnConnect | undefined, string, Environment?]>([
    ['is not there', undefined, 'PROXY_ECONNREFUSED'],
    ['answers 407', answersWith('407 Proxy Authentication Required'), 'PROXY_HTTP_407'],
    ['answers 502', answersWith('502 Bad Gateway'), 'PROXY_HTTP_502'],
    ['hangs up', (socket) => void socket.destroy(), 'PROXY_ECONNRESET'],
    [
      'refuses a plain request with 407',
      () => {},
      'PROXY_HTTP_407',
      { UPSTREAM_BASE_URL: named(service.url), UPSTREAM_CA_FILE: '' },
    ],
  ])(
    '%s is named, its answer is not taken for the service’s, and a creation did not arrive',
    async (_, how, reason, env = {}) => {
      const proxy = how ? await startProxy(how) : 'http://127.0.0.1:9';
      const { query, output } = await start({ HTTPS_PROXY: proxy, HTTP_PROXY: proxy, ...env });
      const { errors } = await query(link);
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryable: true });
      expect(codesOf(await query(token))).toEqual(['UPSTREAM_UNAVAILABLE']);
      expect(output()).toContain(reason);
      expect(service.counters()).toMatchObject({ createClientLink: 0, taxpayerToken: 0 });
      await Promise.all(refused);
    },
  );

  test('never answers costs no more than the time for a call', async () => {
    const { query } = await start({ HTTPS_PROXY: await startProxy(() => {}), UPSTREAM_TIMEOUT_MS: '200' });
    expect(codesOf(await query(link))).toEqual(['UPSTREAM_TIMEOUT']);
  });

  test('speaks TLS is asked for the port 80 of an http: address without a port, and gets no login that is not set', async () => {
    const asked: (string | undefined)[] = [];
    const plain = await startProxy(
      () => {},
      ({ url, headers }, response) => {
        asked.push(url, headers['proxy-authorization']);
        response.end();
      },
    );
    const proxy = await startTlsFront(plain, authority.issue('proxy', 'IP:127.0.0.1'));
    const env = environmentFor({ ...service, url: 'http://service.test' });
    const ways = { HTTP_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: authority.certFile };
    await runCommand({ ...env, ...ways }, ['check']);
    expect(asked).toEqual(['http://service.test:80/', undefined]);
  });

  test('opens tunnels is asked for one and not for each read, and is used by the command check', async () => {
    let tunnels = 0;
    const proxy = await startProxy((socket, target) => {
      tunnels += 1;
      openTunnel(socket, target);
    });
    const env = { HTTPS_PROXY: proxy, UPSTREAM_CA_FILE: authority.certFile };
    const { query } = await start(env);
    const silent = await start({ HTTPS_PROXY: await startProxy(() => {}) });
    for (const [n, id] of service.addTaxpayers(3).entries()) {
      expect(codesOf(await query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`))).toEqual([]);
      // Meanwhile one that never answers is named, after the time that a tunnel may take.
      if (n === 1) expect(codesOf(await silent.query(link))).toEqual(['UPSTREAM_UNAVAILABLE']);
    }
    expect(silent.output()).toContain('PROXY_TIMEOUT');
    expect(tunnels).toBe(1);
    const account = environmentFor({ ...service, url: named(secured.url) });
    const loud = { DEBUG: '*', HTTPS_PROXY: proxy.replace('//', `//${credentials}@`) };
    expect(await runCommand({ ...account, ...env, ...loud }, ['check'])).toMatchObject({ code: 0, stderr: '' });
    expect(tunnels).toBe(2);
  });

  test('cuts the tunnel in mid-call loses a creation, which is not repeated; a read is', async () => {
    const tunnels = new Set<Socket>();
    const proxy = await startProxy((socket, target) => {
      tunnels.add(socket);
      openTunnel(socket, target);
    });
    const { query } = await start({ HTTPS_PROXY: proxy });
    const cutFirst = async (endpoint: 'createClientLink' | 'taxpayerToken') => {
      service.arm({ endpoint, fault: { gate: 'never' }, times: 1 });
      await service.whenCalled(endpoint, 1);
      for (const tunnel of tunnels) tunnel.destroy();
    };
    const [created] = await Promise.all([query(link), cutFirst('createClientLink')]);
    expect(codesOf(created)).toEqual(['OUTCOME_UNKNOWN']);
    const [read] = await Promise.all([query(token), cutFirst('taxpayerToken')]);
    expect(codesOf(read)).toEqual([]);
    expect(service.counters()).toMatchObject({ createClientLink: 1, taxpayerToken: 2 });
  });
});

describe('is reached directly:', () => {
  const isDirect = (url: string, noProxy: readonly string[]) => {
    const HTTPS_PROXY = new Secret('http://proxy.example:3128');
    const agents = new Agents({ HTTPS_PROXY, NO_PROXY: [...noProxy] });
    return agents.newAgent(new URL(url)).constructor === HttpsAgent;
  };

  test.each(['localhost', '127.9.9.9', '[::1]'])('%s, whatever is set', (host) => {
    expect(isDirect(`https://${host}:8443/`, [])).toBe(true);
  });

  test.each([
    ['a name', '.EXAMPLE.com', 'https://example.com./', true],
    ['what is below it', 'example.com', 'https://a.b.example.com/', true],
    ['not a name that only ends alike', 'example.com', 'https://notexample.com/', false],
    ['everything', '*', 'https://example.com/', true],
    ['not a pattern in a name', '*.example.com', 'https://a.example.com/', false],
    ['an IPv6 address', '2001:DB8:0::7', 'https://[2001:db8::7]/', true],
  ])('%s', (_, noProxy, url, expected) => {
    expect(isDirect(url, [noProxy])).toBe(expected);
  });
});
