import { EventEmitter } from 'node:events';
import { whenOver } from '../../../src/http/facts.js';
import { linesWith, metric, startTestGateway, startTrustedProvider, whenMetric } from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const body = '{"query":"{ __typename }"}';

it.each([
  ['before its body', ''],
  ['within its body', body.slice(0, 10)],
  ['after its body', body],
])('A request whose client leaves %s, while its token is verified, is refused and over', async (_, sent) => {
  const provider = await startTrustedProvider();
  provider.behave('hold');
  const { origin, logs } = await startTestGateway(provider.env);
  const connection = rawHttp(origin);
  connection.write(
    'POST /graphql HTTP/1.1',
    'Host: x',
    'Content-Type: application/json',
    'X-Request-Id: left-early',
    `Authorization: ${await provider.watcherOf([])}`,
    `Content-Length: ${body.length}`,
    '',
    sent,
  );
  await fetch(`${origin}/health/live`);
  connection.socket.resetAndDestroy();
  await connection.closed;
  for (let n = 0; n < 3; n += 1) await fetch(`${origin}/health/live`); // meanwhile the gateway hears of it
  provider.release();
  const lines = () => linesWith(logs, { requestId: 'left-early' });
  await until(() => lines().length > 0);
  expect(lines()).toMatchObject([{ outcome: 'refused', codes: ['BAD_USER_INPUT'] }]);
});

it.each(['POST', 'GET'])(
  '%ss whose clients leave while they wait for their turn are refused unread',
  async (method) => {
    const provider = await startTrustedProvider();
    provider.behave('hold');
    const { origin } = await startTestGateway(provider.env);
    const authorization = `Authorization: ${await provider.watcherOf([])}`;
    const count = 40;
    const requests = times(count, (n) => {
      const query = `{${times(9, (m) => `a${n}_${m}:__schema{types{fields{args{type{name}}}}}`)}}`; // soon read, long executed
      const text = method === 'GET' ? '' : JSON.stringify({ query });
      const connection = rawHttp(origin);
      const head = ['Host: x', 'Content-Type: application/json', authorization];
      connection.write(
        `${method} /graphql?query=${query} HTTP/1.1`,
        ...head,
        `Content-Length: ${text.length}`,
        '',
        text,
      );
      return connection;
    });
    for (let n = 0; n < 20; n += 1) await fetch(`${origin}/health/live`); // meanwhile all have come
    provider.release();
    await Promise.race(requests.map(({ answer }) => answer()));
    for (const { socket } of requests) socket.resetAndDestroy();
    await whenMetric({ origin }, 'gateway_operations_total{', count);
    expect(
      await metric({ origin }, 'gateway_operations_total{operation="none",transport="http",outcome="refused"'),
    ).toBeGreaterThan(count / 4);
  },
);

it('A connection keeps nothing of a request that it has answered', () => {
  const socket = new EventEmitter();
  const response = Object.assign(new EventEmitter(), { req: { socket } });
  whenOver(response as never, () => {});
  response.emit('close');
  expect(socket.listenerCount('close')).toBe(0);
});
