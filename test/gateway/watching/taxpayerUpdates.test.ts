import { linesWith, startTestGateway, startTrustedProvider, whenMetric } from '../../support/gateway.js';
import { eventReader, postEvents } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

const withToken = `subscription ($taxpayerId: ID!) {
  taxpayerTokenUpdated(taxpayerId: $taxpayerId) { status accessToken }
}`;

const provider = await startTrustedProvider();
const guarded = await startTestGateway({ TOKEN_FRESH_SECONDS: '1', ...provider.env });

it('taxpayerTokenUpdated shows the access token, and audits it, only to callers with its scope, at each event', async () => {
  const { sandbox } = guarded;
  const { id, accessToken } = sandbox.addTaxpayer({ status: 'CREATED' });
  // Equal ones within a second are one line.
  const audited = () =>
    linesWith(guarded.logs, { audit: 'token-revealed' }).reduce((sum, { count = 1 }) => sum + count, 0);
  const before = audited();
  const watchAs = async (scope: string) => {
    const body = { query: withToken, variables: { taxpayerId: id } };
    return eventReader(await postEvents(guarded, body, { authorization: await provider.watcherOf([id], 300, scope) }));
  };
  const without = await watchAs('taxpayers:read');
  expect(await without.next()).toMatchObject({
    data: {
      data: { taxpayerTokenUpdated: { status: 'CREATED', accessToken: null } },
      errors: [{ path: ['taxpayerTokenUpdated', 'accessToken'], extensions: { code: 'FORBIDDEN' } }],
    },
  });
  const entitled = await watchAs('taxpayers:read taxpayer-tokens:read');
  const shown = (status: string) => ({ data: { data: { taxpayerTokenUpdated: { status, accessToken } } } });
  expect(await entitled.next()).toMatchObject(shown('CREATED'));
  sandbox.updateTaxpayer(id, { status: 'COMPLETED' });
  expect(await entitled.next()).toMatchObject(shown('COMPLETED'));
  await until(() => audited() - before >= 2);
  expect(audited() - before).toBe(2);
  expect(guarded.output()).not.toContain(accessToken);
  await Promise.all([without.cancel(), entitled.cancel()]);
  await whenMetric(guarded, 'gateway_watchers{kind="token"}', 0);
});
