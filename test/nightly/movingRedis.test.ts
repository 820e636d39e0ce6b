import { setTimeout as sleep } from 'node:timers/promises';
import { environmentFor, type GatewayProcess, postQuery, spawnGateway, whenMetric } from '../support/gateway.js';
import { startRedisCluster, startRedisSentinel } from '../support/redis.js';
import { read as readFile } from '../support/repository.js';
import { type Sandbox, startSandbox } from '../support/sandbox.js';
import { times } from '../support/times.js';
import { until } from '../support/until.js';

const readQuery = `query ($id: ID!, $job: ID!) {
  taxpayerToken(taxpayerId: $id) { status }
  refreshJob(taxpayerId: $id, jobId: $job) { status }
}`;
const linkQuery =
  'mutation ($key: String!) { createClientLink(input: { idempotencyKey: $key }) { clientLink { id } } }';
interface Created {
  readonly createClientLink?: { readonly clientLink: { readonly id: string } };
}

/** Nothing was sent; or the record of a creation under way cannot be read, which says nothing of its outcome. */
const whileStoreMoves = ['UPSTREAM_UNAVAILABLE', 'OUTCOME_UNKNOWN'];

/** As docs/token-broker.md asks for: a master that one of its two replicas has left takes no writes. */
const bothReplicas = ['--min-replicas-to-write', '2', '--min-replicas-max-lag', '10'];

/** What docs/operations.md permits a user in a cluster. */
function rulesOfThePage(): readonly string[] {
  const page = readFile('docs/operations.md');
  const [, more = '', rules = ''] = /in a cluster also `([^`]*)`.*?```text\n(~txgw:[^`]*)```/s.exec(page) ?? [];
  return `${rules} ${more}`.trim().split(/\s+/);
}

describe('Two gateways under load', () => {
  let sandbox: Sandbox;
  let fleet: readonly GatewayProcess[] = [];
  beforeEach(async () => {
    sandbox = await startSandbox();
  });

  async function startFleet(url: string) {
    const env = { ...environmentFor(sandbox), CACHE_URL: url, TOKEN_BUDGET_PER_HOUR: '0', RATE_LIMIT_PER_MINUTE: '0' };
    fleet = await Promise.all([spawnGateway(env), spawnGateway(env)]);
  }

  /** Asks both for known and new taxpayers, their jobs, and links by key, while `trouble` lasts and for `afterMs` more. */
  async function loadDuring(trouble: () => Promise<void>, afterMs: number) {
    const addTaxpayer = () => {
      const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED' });
      return { id, job: sandbox.addJob({ taxpayerId: id, durationMs: Infinity }).jobId };
    };
    const known = times(20, addTaxpayer);
    const added: { id: string }[] = [];
    const readErrors: unknown[] = [];
    const linkErrors = new Set<string>();
    const links = new Map<string, Set<string>>();
    const read = async (taxpayer: object) => {
      const answers = await Promise.all(fleet.map(({ origin }) => postQuery(origin, readQuery, taxpayer)));
      readErrors.push(...answers.flatMap(({ errors = [] }) => errors));
    };
    const link = async (key: string) => {
      const ids = links.get(key) ?? new Set();
      links.set(key, ids);
      const answers = await Promise.all(fleet.map(({ origin }) => postQuery<Created>(origin, linkQuery, { key })));
      for (const { data, errors = [] } of answers) {
        if (data?.createClientLink) ids.add(data.createClientLink.clientLink.id);
        for (const { extensions } of errors) linkErrors.add(extensions.code);
      }
      return answers.every(({ errors }) => !errors);
    };
    for (const taxpayer of known) await read(taxpayer);
    const callsFor = () => known.map(({ id }) => sandbox.tokenCalls(id));
    const callsBefore = callsFor();
    let ends = false;
    const again = async (work: (n: number) => Promise<unknown>) => {
      for (let n = 0; !ends; n++) {
        await work(n);
        await sleep(20); // leaves the machine some time for Redis
      }
    };
    const load = Promise.all([
      again(() => Promise.all(known.map(read))),
      again(async () => {
        const taxpayer = addTaxpayer();
        added.push(taxpayer);
        await read(taxpayer);
      }),
      again((n) => link(`key-${n}`)),
    ]);
    try {
      await trouble();
      await sleep(afterMs);
      await until(() => links.size > 1 && added.length > 1, 30_000); // on a busy machine one of each may take all the time
    } finally {
      ends = true;
      await load;
    }
    for (const each of fleet) await whenMetric(each, 'gateway_store_degraded', 0, 90_000);
    for (const key of links.keys()) await until(() => link(key));
    expect(callsFor()).toEqual(callsBefore);
    return { added, readErrors, linkErrors, links };
  }

  function expectPromises({ added, readErrors, linkErrors, links }: Awaited<ReturnType<typeof loadDuring>>) {
    expect(readErrors).toEqual([]);
    expect([...linkErrors].filter((code) => !whileStoreMoves.includes(code))).toEqual([]);
    expect([...links.values()].filter((ids) => ids.size !== 1)).toEqual([]);
    expect(sandbox.counters().createClientLink).toBe(links.size);
    expect(Math.max(...added.map(({ id }) => sandbox.tokenCalls(id)))).toBeLessThanOrEqual(fleet.length);
    expect(added.length).toBeGreaterThan(1);
    expect(links.size).toBeGreaterThan(1);
  }

  it.each([
    ['the operator orders a failover', 'failover'],
    ['the master is killed and comes back', 'killMaster'],
  ] as const)(
    'keep their promises when %s',
    async (_, trouble) => {
      const redis = await startRedisSentinel({ replicas: 2, args: bothReplicas });
      await startFleet(redis.url);
      expectPromises(await loadDuring(redis[trouble], 3000));
    },
    120_000,
  );

  it('keep their promises while slots with keys in use move to another master of a cluster', async () => {
    const redis = await startRedisCluster();
    for (const { command } of redis.nodes) await command('ACL', 'SETUSER', 'app', 'on', '>secret', ...rulesOfThePage());
    await startFleet(redis.url.replace('//', '//app:secret@'));
    expectPromises(await loadDuring(() => redis.reshard(0, 1, 2000), 1000));
  });
});
