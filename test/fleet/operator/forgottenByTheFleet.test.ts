import {
  type Environment,
  environmentFor,
  type GatewayProcess,
  postQuery,
  spawnGateway,
} from '../../support/gateway.js';
import { initSocket } from '../../support/rawSocket.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { commandJson } from '../../support/runCommand.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

interface Shown {
  readonly taxpayerToken: { readonly name: string } | null;
  readonly refreshJob: { readonly name: string } | null;
}

const query = `query Shown($id: ID!, $job: ID!) {
  taxpayerToken(taxpayerId: $id) { name }
  refreshJob(taxpayerId: $id, jobId: $job) { name }
}`;
const withinMs = 5000;

describe('A taxpayer forgotten by 4 processes under load', () => {
  let sandbox: Sandbox;
  let redis: TestRedis;
  let env: Environment;
  let fleet: GatewayProcess[];
  let loadEnds = false;
  let load: Promise<unknown>;

  beforeAll(async () => {
    sandbox = await startSandbox();
    redis = await startRedis();
    const [key, newer] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));
    const keys = { CACHE_ENCRYPTION_KEY: key };
    env = { ...environmentFor(sandbox), ...keys, CACHE_URL: redis.url, TOKEN_BUDGET_PER_HOUR: '0' };
    fleet = await Promise.all(times(4, () => spawnGateway(env)));
    // A note that they cannot read does not hide those that follow.
    await commandJson({ ...env, CACHE_ENCRYPTION_KEY: `${newer},${key}` }, 'forget', 'somebody');
  });

  afterEach(async () => {
    loadEnds = true;
    await load;
  });

  const addTaxpayer = () => {
    const createdAt = '2020-01-01T00:00:00Z'; // fresh for a day
    const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED', name: 'before', createdAt });
    const { jobId } = sandbox.addJob({ taxpayerId: id, name: 'before', status: 'completed' });
    return { id, job: jobId };
  };
  const rename = ({ id, job }: { id: string; job: string }) => {
    sandbox.updateTaxpayer(id, { name: 'after' });
    sandbox.updateJob(id, job, { name: 'after' });
  };
  const ask = async ({ origin }: GatewayProcess, variables: object) => {
    const { data, errors } = await postQuery<Shown>(origin, query, variables);
    expect(errors).toBeUndefined();
    return [data?.taxpayerToken?.name, data?.refreshJob?.name];
  };
  const callsFor = (id: string) => sandbox.tokenCalls(id);

  /** Every process is asked for each of `taxpayers` again and again. */
  function startLoad(taxpayers: readonly object[]) {
    loadEnds = false;
    const ofOne = async (each: GatewayProcess) => {
      while (!loadEnds) await Promise.all(taxpayers.map((variables) => ask(each, variables)));
    };
    load = Promise.all(fleet.map(ofOne));
  }

  it('is in no memory and not in the store within 5 s, and costs one token call to ask for', async () => {
    const taxpayer = addTaxpayer();
    for (const each of fleet) expect(await ask(each, taxpayer)).toEqual(['before', 'before']);
    expect((await commandJson(env, 'inspect', taxpayer.id)).entries).toMatchObject([
      { what: expect.stringMatching(/^(token record|job status)$/) },
      { what: expect.any(String) },
    ]);
    startLoad(times(5, addTaxpayer));
    rename(taxpayer);
    expect(callsFor(taxpayer.id)).toBe(1);

    const { erased, requestId } = await commandJson(env, 'forget', taxpayer.id);
    expect(erased).toBe(2);
    expect((await commandJson(env, 'inspect', taxpayer.id)).entries).toEqual([]);
    await until(() => fleet.every((each) => each.output().includes(requestId)), withinMs);

    expect(await Promise.all(fleet.map((each) => ask(each, taxpayer)))).toEqual(fleet.map(() => ['after', 'after']));
    expect(callsFor(taxpayer.id)).toBe(2);
  }, 60_000);

  it('is not kept by a process that was reading it meanwhile', async () => {
    const [one] = fleet as [GatewayProcess];
    const taxpayer = addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: taxpayer.id, fault: { gate: 'read' }, times: 1 });
    const reading = ask(one, taxpayer);
    await until(() => callsFor(taxpayer.id) === 1);
    rename(taxpayer);
    const told = () => one.output().split('"taxpayer-forgotten"').length;
    const before = told();
    const { requestId } = await commandJson(env, 'forget', taxpayer.id);
    await until(() => one.output().includes(requestId), withinMs);
    expect(told()).toBe(before + 1); // and the notes before it are not heeded again
    sandbox.release('read');
    expect(await reading).toEqual(['before', 'after']);
    expect(await ask(one, taxpayer)).toEqual(['after', 'after']);
  });

  it('is read anew for those who watch the record, though it was fresh and Redis is full', async () => {
    const [one] = fleet as [GatewayProcess];
    const taxpayer = addTaxpayer();
    const socket = await initSocket(one);
    const watch = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { name } }';
    socket.subscribe({ query: watch, variables: taxpayer });
    const shown = (name: string) =>
      socket.message(
        ({ payload }) => JSON.stringify(payload) === JSON.stringify({ data: { taxpayerTokenUpdated: { name } } }),
      );
    await shown('before');
    rename(taxpayer);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await commandJson(env, 'forget', taxpayer.id);
    await shown('after');
    socket.end();
  });
});
