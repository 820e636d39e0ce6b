import { expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { rawHttp } from '../../support/rawConnection.js';
import { until } from '../../support/until.js';

let provider: TrustedProvider | undefined;
let gateway: TestGateway | undefined;

const body = '{"query":"{ __typename }"}';

it.each([
  ['before its body', ''],
  ['within its body', body.slice(0, 10)],
  ['after its body', body],
])('A request whose client leaves %s, while its token is verified, is refused and over', async (_, sent) => {
  provider = await startTrustedProvider();
  provider.behave('hold');
  gateway = await startTestGateway(provider.env);
  const { origin, logs } = gateway;
  const connection = rawHttp(origin);
  connection.write(
    ...['POST /graphql HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'X-Request-Id: left-early'],
    ...[`Authorization: ${await provider.watcherOf([])}`, `Content-Length: ${body.length}`, '', sent],
  );
  await fetch(`${origin}/health/live`);
  connection.socket.resetAndDestroy();
  await connection.closed;
  for (let n = 0; n < 3; n += 1) await fetch(`${origin}/health/live`); // meanwhile the gateway hears of it
  provider.release();
  const line = () => logs.find((logged) => logged.includes('left-early'));
  await until(() => line() !== undefined);
  expect(JSON.parse(line() ?? '')).toMatchObject({ outcome: 'refused', codes: ['BAD_USER_INPUT'] });
});
