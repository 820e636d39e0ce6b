import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import { spawnGateway, startTestGateway } from '../../support/gateway.js';
import { startIdentityProvider } from '../../support/identityProvider.js';
import { initSocket } from '../../support/rawSocket.js';
import { run } from '../../support/run.js';

const script = (...args: string[]) => run(process.execPath, ['--import', 'tsx', 'scripts/devToken.ts', ...args]);
const printed = async (...args: string[]) => (await script(...args)).stdout.trim();
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

describe('The script dev:token', () => {
  it('prints one token with the claims it is told', async () => {
    const { stdout, stderr } = await script(
      ...['--scope', 'taxpayers:read refresh-jobs:read', '--taxpayer', 't1', '--taxpayer', 't2'],
      ...['--subject', 'grace', '--ttl-seconds', '60'],
    );
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/), '']);
    const { iat, exp, ...claims } = claimsOf(stdout);
    expect(claims).toMatchObject({
      sub: 'grace',
      scope: 'taxpayers:read refresh-jobs:read',
      taxpayer_ids: ['t1', 't2'],
    });
    expect(exp - iat).toBe(60);
  });

  it.each([
    ['an unknown scope', ['--scope', 'taxpayers:reed'], /unknown scope taxpayers:reed; known are client-links:create/],
    ['both one taxpayer and all', ['--taxpayer', 't', '--scope', 'taxpayers:any'], /leave one of them out/],
  ])('refuses %s in one line', async (_, args, expected) => {
    const failed = await script(...args).catch((error) => error);
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(expected) });
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
  });
});

const unset = { UPSTREAM_BASE_URL: '', UPSTREAM_CLIENT_ID: '', UPSTREAM_CLIENT_SECRET: '' };
const point = await startTestDecisionPoint();
const gateway = await startTestGateway({ ...unset, AUTH_MODE: 'developer', AUTH_DECISION_URL: point.url });

describe('In developer mode', () => {
  const codesFor = async (authorization?: string) => {
    const query = '{ one: taxpayer(id: "t1") { id } two: taxpayer(id: "t2") { id } }';
    const { errors = [] } = await gateway.query(query, {}, { ...(authorization !== undefined && { authorization }) });
    return errors.map(({ path: place, extensions }) => [place?.[0], extensions.code]);
  };

  it('a caller without a token may do everything, one with a token of the script what it says, and nobody else anything', async () => {
    expect(await codesFor()).toEqual([]);
    expect(await codesFor(`Bearer ${await printed('--taxpayer', 't1')}`)).toEqual([['two', 'FORBIDDEN']]);
    point.allow('grace', ['t2']); // as docs/identity-providers.md tries a decision point
    expect(await codesFor(`Bearer ${await printed('--subject', 'grace', '--taxpayer', 't1')}`)).toEqual([]);
    const stranger = await startIdentityProvider({ issuer: 'urn:taxpayer-gateway:developer' });
    const foreign = [{}, { alg: 'HS256', key: 'another key' }, { alg: 'none' }].map((how) => stranger.token({}, how));
    for (const authorization of [
      ...(await Promise.all(foreign)).map((token) => `Bearer ${token}`),
      'Bearer x',
      'Basic YTpi',
    ]) {
      expect(await codesFor(authorization)).toEqual([[undefined, 'UNAUTHENTICATED']]);
    }
  });

  it('a socket stays open with a token that lasts longer than a timer can run', async () => {
    const spawned = await spawnGateway({ PORT: '0' });
    const socket = await initSocket(spawned, { authorization: `Bearer ${await printed('--ttl-seconds', '31536000')}` });
    socket.subscribe({ query: '{ __typename }' });
    await socket.message(({ type }) => type === 'complete');
    socket.end();
    await spawned.stop();
    expect(spawned.output()).not.toContain('TimeoutOverflowWarning'); // such a timer fires a thousand times a second
  });
});
