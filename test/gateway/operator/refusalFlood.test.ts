import { once } from 'node:events';
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { until } from '../../support/until.js';

const perWay = 2000;
/** Of one connection. */
const atOnce = 100;
/** More than the limit lets through in a minute, so that none of them goes through when a new minute begins. */
const twoRootFields = '{ a: __typename b: __typename }';

describe('A flood of refusals', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  beforeAll(async () => {
    provider = await startTrustedProvider();
    gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '1' });
  });
  afterAll(async () => {
    await gateway.stop();
    await provider.stop();
  });

  it('is told by few lines that stand for all of them, whatever is refused', async () => {
    const limited = `Bearer ${await provider.token()}`;
    const forged = `Bearer ${await provider.token()}x`;
    const ways = [undefined, 'Bearer made.up.token', forged, limited];
    const answers = await Promise.all(ways.map((authorization) => flood(authorization)));
    const codeOf = (body: string) => ({ code: JSON.parse(body).errors?.[0].extensions.code });
    const codes = answers.map((bodies) => countsByCode(bodies.map(codeOf)));
    expect(codes).toEqual([...Array(3).fill({ UNAUTHENTICATED: perWay }), { RATE_LIMITED: perWay }]);
    for (const bodies of answers) expect(new Set(bodies.map(withoutIds)).size).toBe(1);
    const lines = () => gateway.logs.map((line) => JSON.parse(line)).filter(({ outcome }) => outcome === 'refused');
    const told = () => countsByCode(lines().map(({ codes: [code], count }) => ({ code, count })));
    const refused = { UNAUTHENTICATED: 3 * perWay, RATE_LIMITED: perWay };
    await until(() => isDeepStrictEqual(told(), refused)).finally(() => expect(told()).toEqual(refused));
    expect(lines().length).toBeLessThan(100);
  }, 60_000);

  /** The bodies of the answers to as many equal requests on one connection. */
  async function flood(authorization: string | undefined): Promise<string[]> {
    const { hostname, port } = new URL(gateway.origin);
    const socket = connect(Number(port), hostname);
    const token = authorization === undefined ? '' : `Authorization: ${authorization}\r\n`;
    const body = `{"query":"${twoRootFields}"}`;
    const request = `POST /graphql HTTP/1.1\r\nHost: ${hostname}\r\n${token}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const bodies: string[] = [];
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    for (let sent = 0; sent < perWay; sent += atOnce) {
      socket.write(request.repeat(atOnce));
      while (text.split('HTTP/1.1 ').length - 1 < atOnce || !text.endsWith('}')) await once(socket, 'data');
      bodies.push(...text.split(/HTTP\/1\.1 [\s\S]*?\r\n\r\n/).slice(1));
      text = '';
    }
    socket.destroy();
    return bodies;
  }
});

function countsByCode(told: readonly { readonly code?: string; readonly count?: number }[]) {
  const counts: Record<string, number> = {};
  for (const { code = 'not refused', count = 1 } of told) counts[code] = (counts[code] ?? 0) + count;
  return counts;
}

function withoutIds(body: string): string {
  return body.replace(/"requestId":"[^"]*"/, '').replace(/"retryAfterSeconds":\d+/, '');
}
