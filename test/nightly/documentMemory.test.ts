import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { environmentFor, type GatewayProcess, spawnGateway } from '../support/gateway.js';
import { type RawSocket, rawSocket } from '../support/rawSocket.js';
import { startSandbox } from '../support/sandbox.js';

// What one caller sends is not kept beyond a share of the heap, whatever way it comes and however often.

type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

let provider: TrustedProvider;
let sandbox: Sandbox;
let authorization: string;

beforeAll(async () => {
  provider = await startTrustedProvider();
  sandbox = await startSandbox({ clientId: 'test-client', clientSecret: 'test-secret' });
  authorization = `Bearer ${await provider.token({ scope: '', taxpayer_ids: [] })}`;
});

afterAll(async () => {
  await sandbox.stop();
  await provider.stop();
});

const smallProcess = (heapMegabytes: number) =>
  spawnGateway({
    ...environmentFor(sandbox),
    ...provider.env,
    CACHE_URL: 'memory:',
    RATE_LIMIT_PER_MINUTE: '0',
    NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}`,
  });

/** Ten kilobytes that are valid, quick to check and take seventy times as much once they are parsed. */
const document = (n: number) =>
  `mutation M${n} { createClientLink(input: { metadata: { a: [${'1 '.repeat(1900)}] } }) { replayed } }\n${'#\n'.repeat(3000)}`;
const documents = 400;

async function post({ origin }: GatewayProcess, path: string, body: string): Promise<string> {
  const accept = path === '/graphql' ? 'application/json' : 'text/event-stream';
  const headers = { 'content-type': 'application/json', accept, authorization };
  const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body });
  return response.text();
}

async function send(socket: RawSocket, id: string, query: string): Promise<unknown> {
  socket.received.length = 0;
  socket.send({ type: 'subscribe', id, payload: { query } });
  return (await socket.message((message) => message.id === id && message.type !== 'complete')).payload;
}

describe('a process with a heap of 256 MB outlives', () => {
  let gateway: GatewayProcess;

  beforeAll(async () => {
    gateway = await smallProcess(256);
  });

  afterAll(() => gateway.kill());

  it(`${documents} documents of a caller without scopes, each sent twice as an event stream, over a socket and by HTTP`, async () => {
    const socket = rawSocket(gateway.origin, { headers: { authorization } });
    await socket.init();
    for (let n = 0; n < documents; n += 1) {
      const query = document(n);
      const body = JSON.stringify({ query });
      for (let time = 0; time < 2; time += 1) {
        expect(await post(gateway, '/graphql/stream', body)).toContain('"code":"FORBIDDEN"');
        expect(JSON.stringify(await send(socket, `${n}.${time}`, query))).toContain('"code":"FORBIDDEN"');
        expect(await post(gateway, '/graphql', body)).toContain('"code":"FORBIDDEN"');
      }
    }
    socket.end();
    expect(gateway.child.exitCode).toBeNull();
  }, 300_000);

  it('short documents that stand for much under entities, each sent until it has a plan', async () => {
    const fields = 'taxpayerId name status provider providerId createdAt metadata fetchedAt stale __typename';
    const aliases = Array.from({ length: 55 }, (_, n) => `a${n}: token { ${fields} taxpayer { id token { ...T } } }`);
    for (let n = 0; n < 400; n += 1) {
      const query = `query Q${n}($r: [_Any!]!) { _entities(representations: $r) { ... on Taxpayer { ${aliases.join(' ')} } } }
        fragment T on TaxpayerToken { ${fields} }`;
      const body = JSON.stringify({ query, variables: { r: [] } });
      for (let time = 0; time < 3; time += 1) {
        expect(await post(gateway, '/graphql', body)).toBe('{"data":{"_entities":[]}}');
      }
    }
    expect(gateway.child.exitCode).toBeNull();
  }, 120_000);
});

describe('a process with a heap of 100 MB outlives', () => {
  it('request bodies that take twenty times as much once they are read, each sent four times', async () => {
    const gateway = await smallProcess(100);
    const nothings = `[${'{},'.repeat(87_000)}{}]`; // 261 kB
    for (let n = 0; n < 30; n += 1) {
      const body = `{"query":"{ __typename }","variables":{"n":${n},"x":${nothings}}}`;
      for (let time = 0; time < 4; time += 1) {
        expect(await post(gateway, '/graphql', body)).toBe('{"data":{"__typename":"Query"}}');
      }
    }
    await gateway.kill();
  }, 120_000);
});
