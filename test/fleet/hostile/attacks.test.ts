import {
  environmentFor,
  type GatewayProcess,
  spawnGateway,
  startTrustedProvider,
  type TrustedProvider,
} from '../../support/gateway.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { type Attack, codesOf, launch, type RawAnswer, type Scene, withDocument } from './attacks/Attack.js';
import { documentAttacks, transportAttacks } from './attacks/shapes.js';
import { tokenAttacks } from './attacks/tokens.js';

// Every row is one hostile request at one built gateway with a real identity provider, in production mode. Afterwards the
// same process answers an honest caller, has met no bug of its own, and has asked the service nothing at all.

const scopes = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
let sandbox: Sandbox;
let provider: TrustedProvider;
let gateway: GatewayProcess;
let scene: Scene;

beforeAll(async () => {
  sandbox = await startSandbox();
  provider = await startTrustedProvider();
  const own = sandbox.addTaxpayer({ id: 'own-taxpayer' }).id;
  scene = {
    provider,
    token: (claims, how) => provider.token({ scope: scopes, taxpayer_ids: [own], ...claims }, how),
    own,
  };
  gateway = await spawnGateway({
    ...environmentFor(sandbox),
    NODE_ENV: 'production',
    ...provider.env,
    FEDERATION_SHARED_SECRET: 'the-secret-of-the-router',
    NODE_OPTIONS: '--max-old-space-size=256', // V8 takes more than it needs where it may
  });
});

describe('hostile requests', () => {
  const tables = {
    tokens: tokenAttacks,
    documents: documentAttacks,
    transport: transportAttacks,
  };

  test.each(Object.entries(tables))('%s: each is refused with its status and code', async (_, table) => {
    const attacks = await table(scene);
    const outcomes: string[] = [];
    sandbox.resetCounters();
    for (const attack of attacks) outcomes.push(await outcomeOf(attack));
    expect(outcomes).toEqual(attacks.map(expected));
    expect(sandbox.requests()).toEqual([]);
  });

  test('there are more than 100 of them, and the same process answers an honest caller', async () => {
    const attacks = await Promise.all(Object.values(tables).map((table) => table(scene)));
    expect(attacks.flat().length).toBeGreaterThan(100);
    const query = `{ taxpayerToken(taxpayerId: "${scene.own}") { status } }`;
    const answer = await launch(gateway.origin, { ...honest, ...withDocument(`Bearer ${await scene.token()}`, query) });
    expect(answer).toMatchObject({ status: 200 });
    expect(JSON.parse(answer.text)).toMatchObject({ data: { taxpayerToken: { status: expect.any(String) } } });
  });

  test.each(Object.entries(tables))(
    '%s: the same once each document has a plan and each record is in memory',
    async (_, table) => {
      const authorization = `Bearer ${await scene.token({ scope: `${scopes} taxpayers:any` })}`;
      const attacks = (await table(scene)).filter(({ body, path }) => typeof body === 'string' && path === undefined);
      const outcomes: string[] = [];
      for (const attack of attacks) {
        // The one who may see everybody asks the same, often enough for a plan.
        for (const _time of [1, 2, 3]) {
          const sent = launch(gateway.origin, { ...attack, headers: { ...attack.headers, authorization } });
          await sent.catch(() => {}); // some are cut off
        }
        outcomes.push(await outcomeOf(attack));
      }
      expect(outcomes).toEqual(attacks.map(expected));
    },
  );

  test('the process met no bug of its own and its memory is bounded', () => {
    expect(gateway.output()).not.toContain('a bug of the gateway');
    expect(gateway.child.exitCode).toBeNull();
    expect(gateway.peakKiB()).toBeLessThan(400 * 1024);
  });

  test('no answer suggests names, and none carries the software’s', async () => {
    const answer = await launch(gateway.origin, {
      ...honest,
      ...withDocument(`Bearer ${await scene.token()}`, '{ taxpayerTokn(taxpayerId: "x") { nam } }'),
    });
    expect(answer.text).toContain('The document does not fit the schema');
    expect(answer.text).not.toContain('taxpayerToken');
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store, no-transform',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    });
    expect(answer.headers).not.toHaveProperty('server');
    expect(answer.headers).not.toHaveProperty('x-powered-by');
  });
});

const honest: Attack = { name: 'an honest request', status: 200, code: undefined };

/** One line per attack, so that a failed run lists every row that went otherwise. */
async function outcomeOf(attack: Attack) {
  const answer = await launch(gateway.origin, attack);
  return [attack.name, answer.status, ...new Set(codesOf(answer)), ...echoes(answer)].join(' ');
}

const expected = ({ name, status, code = '' }: Attack) => `${name} ${status} ${code}`.trimEnd();

/** Of the values sent, those that stand in the answer: errors must not quote them. */
function echoes({ text }: RawAnswer) {
  return ['123-45-6789', 'evil.example', 'etc/passwd', 'OR 1=1', 'x'.repeat(30)].filter((value) =>
    text.includes(value),
  );
}
