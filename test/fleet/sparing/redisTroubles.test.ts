import { setTimeout as delay } from 'node:timers/promises';
import { type Environment, metric, startTestGateway, type TestGateway, whenMetric } from '../../support/gateway.js';
import { startRedis } from '../../support/redis.js';
import { startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

type Scenery = Awaited<ReturnType<typeof build>>;

const day = 24 * 3_600_000;

async function build() {
  const redis = await startRedis();
  const sandbox = await startSandbox();
  const env = { CACHE_URL: redis.url, UPSTREAM_BASE_URL: sandbox.url, TOKEN_BUDGET_PER_HOUR: '0' };
  /** The keys of the records, which alone are kept for days. */
  const records = async () => {
    const keys = await redis.keys();
    const left = await Promise.all(keys.map((key) => redis.command('PTTL', key)));
    return keys.filter((_, n) => Number(left[n]) > 2 * day);
  };
  return {
    redis,
    sandbox,
    records,
    /** A process that has nothing in memory. */
    start: (more: Environment = {}) => startTestGateway({ ...env, ...more }),
    addTaxpayers: (count: number) => sandbox.addTaxpayers(count, { status: 'AUTHORIZED' }) as [string, ...string[]],
    isWell: (gateway: TestGateway) => whenMetric(gateway, 'gateway_store_degraded', 0, 20_000),
    areStored: (count: number) => until(async () => (await records()).length === count, 20_000),
  };
}

const itMostlyWaits = together();

/** A test with a Redis of its own. */
function scene(title: string, run: (scenery: Scenery) => Promise<void>) {
  itMostlyWaits(title, async () => run(await build()));
}

async function read({ query }: TestGateway, id: string) {
  const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId stale } }';
  const { data, errors } = await query<{ taxpayerToken: { taxpayerId: string; stale: boolean } }>(document, { id });
  if (errors) return String(errors[0]?.extensions.code);
  expect(data?.taxpayerToken.stale).toBe(false);
  return String(data?.taxpayerToken.taxpayerId);
}

const storeLines = ({ logs }: TestGateway) => logs.filter((line) => /store (un)?available/.test(line));

scene('Redis that is killed on the way gets what it missed, twice, and each time is told once', async (scenery) => {
  const { redis, sandbox, start, isWell, areStored } = scenery;
  const [before, ...during] = scenery.addTaxpayers(3);
  const one = await start();
  expect(await read(one, before)).toBe(before);
  for (const id of during) {
    await redis.kill();
    expect(await read(one, id)).toBe(id);
    await redis.restart(); // empty
    await areStored(1);
    await isWell(one);
    expect(await read(await start(), id)).toBe(id);
    expect(sandbox.tokenCalls(id)).toBe(1);
  }
  expect(await read(one, before)).toBe(before);
  expect(sandbox.tokenCalls(before)).toBe(1);
  expect(storeLines(one).map((line) => /store unavailable|store available again/.exec(line)?.[0])).toEqual(
    Array(2).fill(['store unavailable', 'store available again']).flat(),
  );
});

scene('Redis that falls silent is not waited for at each read', async (scenery) => {
  const { redis, sandbox, start, areStored } = scenery;
  const one = await start();
  const ids = scenery.addTaxpayers(40);
  redis.pause();
  const startedAt = performance.now();
  for (const id of ids) expect(await read(one, id)).toBe(id);
  expect(performance.now() - startedAt).toBeLessThan(ids.length * 300); // an operation has 250 ms
  redis.resume();
  await areStored(ids.length);
  const two = await start();
  for (const id of ids) expect(await read(two, id)).toBe(id);
  expect(sandbox.counters().taxpayerToken).toBe(ids.length);
});

scene('Redis that is full, or a replica that takes no writes, is still read', async (scenery) => {
  const { redis, sandbox, start, isWell, areStored } = scenery;
  const troubles = [
    ['CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'],
    ['REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'], // a master that is not there: the data stays
  ];
  const tell = (words = '') => redis.command(...(words.split(' ') as [string]));
  const ids = scenery.addTaxpayers(3);
  await read(await start(), ids[0]);
  for (const [n, [begin, end]] of troubles.entries()) {
    const [known, unknown] = ids.slice(n) as [string, string];
    await tell(begin);
    const one = await start();
    expect([await read(one, known), await read(one, unknown)]).toEqual([known, unknown]);
    await tell(end);
    await isWell(one);
    await areStored(n + 2);
  }
  for (const id of ids) expect([await read(await start(), id), sandbox.tokenCalls(id)]).toEqual([id, 1]);
});

scene(
  'Entries that were lost, replaced, damaged or swapped count as absent, and no store as failing',
  async (scenery) => {
    const { redis, sandbox, records, start, areStored } = scenery;
    const [lost, ...others] = scenery.addTaxpayers(3);
    const [one, two] = others as [string, string];
    const calls = () => [lost, one, two].map((id) => sandbox.tokenCalls(id));
    const readBoth = async () => {
      const gateway = await start();
      for (const id of [one, two]) expect(await read(gateway, id)).toBe(id);
      await areStored(2);
      expect(storeLines(gateway)).toEqual([]);
    };
    await read(await start(), lost);
    await redis.command('FLUSHALL');
    expect(await read(await start(), lost)).toBe(lost);
    await redis.command('FLUSHALL');
    await readBoth();
    expect(calls()).toEqual([2, 1, 1]);
    const [first, second] = (await records()) as [string, string];
    await redis.command('RENAME', first, 'aside');
    await redis.command('RENAME', second, first);
    await redis.command('RENAME', 'aside', second);
    await readBoth();
    expect(calls()).toEqual([2, 2, 2]);
    const append = "redis.call('hset', KEYS[1], 'token', redis.call('hget', KEYS[1], 'token') .. 'x')";
    for (const key of await records()) await redis.command('EVAL', append, '1', key);
    await readBoth();
    expect(calls()).toEqual([2, 3, 3]);
    for (const key of await records()) {
      await redis.command('DEL', key);
      await redis.command('LPUSH', key, 'x');
    }
    await readBoth();
    expect(calls()).toEqual([2, 4, 4]);
  },
);

scene(
  'A process spends an eighth of the budget while Redis is away, beside what the fleet may count there',
  async (scenery) => {
    const { redis, sandbox, start, isWell, areStored } = scenery;
    const env = { TOKEN_BUDGET_PER_HOUR: '64', RATE_LIMIT_PER_MINUTE: '0' };
    await redis.kill();
    const one = await start(env);
    for (const id of scenery.addTaxpayers(40)) {
      expect([id, 'TOKEN_BUDGET_EXHAUSTED']).toContain(await read(one, id));
    }
    const alone = sandbox.counters().taxpayerToken;
    expect(alone).toBe(8);
    await redis.restart();
    await isWell(one);
    await areStored(alone);
    for (const id of scenery.addTaxpayers(2)) expect(await read(one, id)).toBe(id);
    const two = await start(env);
    for (const id of scenery.addTaxpayers(80)) await read(two, id);
    expect(sandbox.counters().taxpayerToken).toBe(alone + 64);
  },
);

scene(
  'A process keeps the pause that the service asked for while Redis is away',
  async ({ redis, sandbox, ...scenery }) => {
    await redis.kill();
    const one = await scenery.start();
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 429, headers: { 'Retry-After': '60' } }, times: 1 });
    for (const id of scenery.addTaxpayers(3)) expect(await read(one, id)).toBe('UPSTREAM_RATE_LIMITED');
    expect(sandbox.counters().taxpayerToken).toBe(1);
  },
);

scene('Every key in Redis ends by itself', async (scenery) => {
  const { redis, sandbox, start } = scenery;
  const one = await start({ TOKEN_BUDGET_PER_HOUR: '100' });
  const [id] = scenery.addTaxpayers(1);
  const job = sandbox.addJob({ taxpayerId: id, durationMs: Infinity }).jobId;
  await one.query('query ($id: ID!, $job: ID!) { refreshJob(taxpayerId: $id, jobId: $job) { status } }', { id, job });
  await create(one, 'key');
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 429 }, times: 1 });
  await read(one, 'nobody');
  const keys = await redis.keys();
  expect(keys.length).toBeGreaterThanOrEqual(4);
  for (const key of keys) expect([key, Number(await redis.command('PTTL', key)) !== -1]).toEqual([key, true]);
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 500 } });
  await read(await start(), 'failing');
  const [failed = ''] = (await redis.keys()).filter((key) => !keys.includes(key));
  expect(await redis.command('HLEN', failed)).toBe(1); // the failure, for those who wait for it
  expect(Number(await redis.command('PTTL', failed))).toBeLessThanOrEqual(10_000);
});

/** `created` or `replayed` with the id of the link, or the code of the error. */
async function create({ query }: TestGateway, key: string, name = 'a name') {
  const document = `mutation ($key: String!, $metadata: JSONObject) {
    createClientLink(input: { idempotencyKey: $key, metadata: $metadata }) { clientLink { id } replayed }
  }`;
  type Created = { createClientLink: { clientLink: { id: string }; replayed: boolean } };
  const { data, errors } = await query<Created>(document, { key, metadata: { name } });
  const error = errors?.[0]?.extensions;
  if (error) return error.code + (error.retryable ? ', again' : '');
  return `${data?.createClientLink.replayed ? 'replayed' : 'created'} ${data?.createClientLink.clientLink.id}`;
}

/** The outcome once the store answers again; each process notices that by itself. */
async function afterwards(ask: () => Promise<string>) {
  let outcome = '';
  await until(async () => {
    outcome = await ask();
    return outcome !== 'UPSTREAM_UNAVAILABLE, again';
  }, 20_000);
  return outcome;
}

/** Waits only for 4 seconds for a creation under way. */
const impatient = { UPSTREAM_TIMEOUT_MS: '1000', UPSTREAM_DEADLINE_MS: '2000' };

scene(
  'A link is replayed by the process that created it while Redis is silent, and by others afterwards',
  async (scenery) => {
    const { redis, sandbox } = scenery;
    const [one, two] = [await scenery.start(), await scenery.start()];
    const link = (await create(one, 'key')).replace('created ', '');
    redis.pause();
    expect(await create(one, 'key')).toBe(`replayed ${link}`);
    expect(await create(one, 'key', 'another name')).toBe('IDEMPOTENCY_CONFLICT');
    for (let n = 0; n < 3; n++) expect(await create(two, 'key')).toBe('UPSTREAM_UNAVAILABLE, again');
    redis.resume();
    expect(await afterwards(() => create(two, 'key'))).toBe(`replayed ${link}`);
    await redis.kill();
    await redis.restart();
    expect(await create(one, 'key')).toBe(`replayed ${link}`); // though Redis lost it
    expect(sandbox.counters().createClientLink).toBe(1);
  },
);

scene('A new key is refused without a call while Redis is silent, and unused afterwards', async (scenery) => {
  const { redis, sandbox } = scenery;
  const [one, two] = [await scenery.start(), await scenery.start()];
  redis.pause();
  const refused = [create(one, 'a'), create(one, 'a'), create(two, 'a'), create(one, 'b')];
  expect(new Set(await Promise.all(refused))).toEqual(new Set(['UPSTREAM_UNAVAILABLE, again']));
  expect(sandbox.counters().createClientLink).toBe(0);
  redis.resume();
  expect(await afterwards(() => create(one, 'a'))).toMatch(/^created /);
  expect(await afterwards(() => create(two, 'b'))).toMatch(/^created /);
  expect(sandbox.counters().createClientLink).toBe(2);
});

scene('A link whose process ended while Redis was silent has an unknown outcome', async (scenery) => {
  const { redis, sandbox } = scenery;
  const [one, two] = [await scenery.start(), await scenery.start(impatient)];
  sandbox.arm({ endpoint: 'createClientLink', fault: { gate: 'held' }, times: 1 });
  const creating = create(one, 'key');
  await sandbox.whenCalled('createClientLink', 1);
  redis.pause();
  for (const key of ['a', 'b', 'c']) await create(one, key); // from then on Redis is not asked
  sandbox.release('held');
  expect(await creating).toMatch(/^created /);
  await one.gateway.stop();
  redis.resume();
  expect(await afterwards(() => create(two, 'key'))).toBe('OUTCOME_UNKNOWN');
  expect(sandbox.counters().createClientLink).toBe(1);
});

scene('A link whose record was damaged has an unknown outcome', async ({ redis, sandbox, start }) => {
  await create(await start(), 'key');
  for (const key of await redis.keys()) {
    if (Number(await redis.command('PTTL', key)) > day / 2) await redis.command('APPEND', key, 'x');
  }
  const two = await start(impatient);
  expect(await create(two, 'key')).toBe('OUTCOME_UNKNOWN');
  expect(sandbox.counters().createClientLink).toBe(1);
});

scene('Keys that are refused while Redis is away leave nothing to do once it is back', async (scenery) => {
  const { redis, start, isWell } = scenery;
  await redis.kill();
  const one = await start();
  await whenMetric(one, 'gateway_store_degraded', 1);
  for (let n = 0; n < 20; n += 1) expect(await create(one, `key-${n}`)).toBe('UPSTREAM_UNAVAILABLE, again');
  await redis.restart();
  await isWell(one);
  await delay(1200); // what is repeated is repeated each second
  expect(await metric(one, 'gateway_store_seconds_count{command="deleteIf"')).toBe(0);
  expect(await create(one, 'key-0')).toMatch('created');
});

scene('Tries that wait for one creation look at its record together', async ({ sandbox, start }) => {
  const [one, two] = [await start(), await start()];
  sandbox.arm({ endpoint: 'createClientLink', fault: { gate: 'slow' }, times: 1 });
  const first = create(one, 'key');
  await sandbox.whenCalled('createClientLink', 1);
  const others = times(50, () => create(two, 'key'));
  await delay(1000);
  sandbox.release('slow');
  const link = (await first).replace('created ', '');
  expect(await Promise.all(others)).toEqual(Array(50).fill(`replayed ${link}`));
  expect(await metric(two, 'gateway_store_seconds_count{command="get"')).toBeLessThan(2 * 50);
});

scene('What was read without Redis is stored also after another process failed to read it', async (scenery) => {
  const { redis, sandbox, start, areStored } = scenery;
  const [id] = scenery.addTaxpayers(1);
  await redis.command('ACL', 'SETUSER', 'one', 'on', '>secret', '~*', '+@all');
  const one = await start({ CACHE_URL: redis.url.replace('//', '//one:secret@') });
  await redis.command('ACL', 'SETUSER', 'one', 'off');
  await redis.command('CLIENT', 'KILL', 'USER', 'one');
  expect(await read(one, id)).toBe(id);
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { status: 500, delayMs: 2000 } });
  const failing = read(await start(), id);
  await sandbox.whenCalled('taxpayerToken', 2);
  await redis.command('ACL', 'SETUSER', 'one', 'on');
  expect(await failing).toBe('UPSTREAM_UNAVAILABLE');
  await areStored(1);
});
