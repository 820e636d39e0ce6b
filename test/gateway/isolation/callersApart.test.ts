import type { TaxpayerId } from '../../../src/datasources/identifiers.js';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { type Member, outcomeOf, startFleet } from '../../support/fleet.js';
import { codesOf, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { addJob } from '../../support/liveJob.js';
import { initSocket } from '../../support/rawSocket.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const provider = await startTrustedProvider();
/** With the limits of a deployment, but no budget. */
const env = { ...provider.env, RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' };
const gateway = await startTestGateway(env);
const { sandbox } = gateway;
beforeEach(() => {
  sandbox.disarmAll();
  sandbox.setLatency(0);
  sandbox.resetCounters();
});

const readJob =
  'query ($taxpayerId: ID!, $jobId: ID!) { refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { status } }';
const readRecord = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';

/** A query for so many jobs of a taxpayer, none of which exist. */
function readMadeUp(taxpayerId: string, count: number, name = 'made-up') {
  const field = (n: number) => `a${n}: refreshJob(taxpayerId: "${taxpayerId}", jobId: "${name}-${n}") { status }`;
  return `{ ${times(count, (n) => field(n)).join(' ')} }`;
}

/** The headers of a caller who may see these taxpayers. */
const headersOf = async (sub: string, ...taxpayers: readonly string[]) => ({
  authorization: `Bearer ${await provider.token({ sub, scope: 'refresh-jobs:read taxpayers:read', taxpayer_ids: taxpayers })}`,
});

it('An outage of an endpoint is found by three callers for all, and costs one trial at a time until one is answered', async () => {
  const resetMs = 60_000;
  const { one, sandbox, advance, ...fleet } = await startFleet({ BREAKER_RESET_MS: resetMs });
  const ids = fleet.addTaxpayers(20, { status: 'AUTHORIZED' });
  for (const id of ids) await one.broker.record(id);
  /** Each of twenty callers reads a job of a taxpayer of its own. */
  const reads = ids.map((id, n) => () => outcomeOf(one.jobs.status(id, fleet.addJob(id), { holder: `caller-${n}` })));
  const outcomesOf = async (run: () => Promise<string[]>) => {
    const before = sandbox.counters().refreshJob;
    const outcomes = [...new Set(await run())];
    return { outcomes, calls: sandbox.counters().refreshJob - before };
  };
  const inTurn = async () => {
    const outcomes = [];
    for (const read of reads) outcomes.push(await read());
    return outcomes;
  };
  const together = () => Promise.all(reads.map((read) => read()));
  sandbox.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
  expect(await outcomesOf(inTurn)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 3 * maxTries });
  advance(resetMs);
  expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 1 });
  sandbox.disarmAll();
  advance(resetMs);
  expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE', 'answered'], calls: 1 });
  expect(await outcomesOf(together)).toEqual({ outcomes: ['answered'], calls: 20 });
  // Met by all at once: what is on its way is not called back, and the wait of 4 s before a second try is never used up.
  const slow = { status: 500, headers: { 'retry-after': '4' } };
  sandbox.arm({ endpoint: 'refreshJob', fault: slow, times: 17 });
  sandbox.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
  expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 17 + 3 * maxTries });
  expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 0 });
  sandbox.disarmAll();
  advance(resetMs + 10_000); // nobody has called meanwhile
  expect(await outcomesOf(together)).toEqual({ outcomes: ['answered'], calls: 20 });
});

it('The breaker of a caller opens, for that caller alone, when five ids fail in a row within ten seconds: neither when one fails often, nor with any answer between', async () => {
  const { one, sandbox, advance, addTaxpayers, addJob, ids } = await startFleet({ BREAKER_RESET_MS: 60_000 });
  const [good, ...bad] = addTaxpayers(6) as [TaxpayerId, ...TaxpayerId[]];
  for (const taxpayerId of bad) sandbox.arm({ endpoint: 'refreshJob', taxpayerId, fault: { status: 500 } });
  const read = (id: TaxpayerId, holder = 'one') =>
    outcomeOf(one.jobs.status(id, id === good ? addJob(id) : ids.jobId('bad'), { holder }));
  const fail = async (ids: readonly TaxpayerId[]) => {
    for (const id of ids) expect(await read(id)).toBe('UPSTREAM_UNAVAILABLE');
  };
  await fail(Array(8).fill(bad[0]));
  expect(await read(good)).toBe('answered');
  await fail(bad.slice(1));
  sandbox.arm({ endpoint: 'refreshJob', taxpayerId: good, fault: { body: 'null' }, times: 1 });
  expect(await read(good)).toBe('UPSTREAM_INVALID_RESPONSE');
  await fail(bad.slice(1));
  advance(10_000);
  await fail(bad.slice(0, 1));
  expect(await read(good)).toBe('answered');
  await fail(bad);
  expect(await read(good)).toBe('UPSTREAM_UNAVAILABLE');
  expect(await read(good, 'another')).toBe('answered');
  advance(60_000);
  expect(await read(good)).toBe('answered');
});

it('A trial that a pause of the fleet refuses proves nothing: once the pause is over, one call is the trial for all', async () => {
  const { one, two, sandbox, advance, ...fleet } = await startFleet({ size: 2, BREAKER_RESET_MS: 1000 });
  const taxpayers = fleet.addTaxpayers(20, { status: 'AUTHORIZED' });
  const read = async ({ jobs, broker }: Member, n: number) => {
    const id = taxpayers[n] as TaxpayerId;
    await broker.record(id);
    return outcomeOf(jobs.status(id, fleet.addJob(id), { holder: `caller-${n}` }));
  };
  const outage = sandbox.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
  for (const n of [0, 1, 2]) expect(await read(one, n)).toBe('UPSTREAM_UNAVAILABLE');
  sandbox.disarm(outage);
  sandbox.arm({ endpoint: 'refreshJob', fault: { status: 429, headers: { 'retry-after': '5' } }, times: 1 });
  expect(await read(two, 3)).toBe('UPSTREAM_RATE_LIMITED');
  sandbox.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
  advance(1000);
  const before = sandbox.counters().refreshJob;
  for (const n of [4, 5]) expect(await read(one, n)).toBe('UPSTREAM_RATE_LIMITED');
  advance(5000);
  const outcomes = await Promise.all(taxpayers.map((_, n) => read(one, n)));
  expect(new Set(outcomes)).toEqual(new Set(['UPSTREAM_UNAVAILABLE']));
  expect(sandbox.counters().refreshJob - before).toBe(1);
});

it('A caller who asks for more than the service can answer at once has a share of the calls under way, and delays nobody else', async () => {
  const [eve, ada] = [addJob(gateway), addJob(gateway)];
  const hostile = await headersOf('flooding', eve.taxpayerId);
  const honest = await headersOf('honest', ada.taxpayerId);
  await gateway.query(readJob, eve, hostile);
  await gateway.query(readJob, ada, honest);
  const { jobId } = sandbox.addJob({ ...ada, jobId: 'another', durationMs: Infinity });
  const before = sandbox.counters().refreshJob;
  sandbox.setLatency(300);
  // 360 reads, 32 at a time: 3.4 s of work, so that none waits for the 10 s after which it is refused.
  const pages = times(6, (n) => readMadeUp(eve.taxpayerId, 60, `page-${n}`));
  const flood = Promise.all(pages.map((page) => gateway.query(page, {}, hostile)));
  await sandbox.whenCalled('refreshJob', before + 33); // some of them, should a busy machine refuse the others
  const asked = gateway.query<{ refreshJob: { status: string } }>(readJob, { ...ada, jobId }, honest);
  const first = await Promise.race([asked.then(({ data }) => data?.refreshJob.status), flood.then(() => 'the flood')]);
  expect(first).toBe('PROCESSING');
  // 32 of the hostile caller at once: the first 32, and those that took their places meanwhile.
  expect(sandbox.counters().refreshJob - before).toBeLessThan(5 * 64);
  // On a busy machine some of the flood waits too long for its turn, or a whole request takes too much of its time.
  for (const answer of await flood) {
    expect([1, 60]).toContain(answer.errors?.length);
    expect(['NOT_FOUND', 'RATE_LIMITED']).toEqual(expect.arrayContaining(codesOf(answer)));
  }
});

it('A caller who asks while all places of the process are taken gets the next one, before those who have some and wait for more', async () => {
  const patient = await startTestGateway({ ...env, UPSTREAM_TIMEOUT_MS: '60000', UPSTREAM_DEADLINE_MS: '60000' });
  const { sandbox } = patient;
  const last = addJob(patient);
  const pages = sandbox.addTaxpayers(9, { status: 'AUTHORIZED' }).map(async (taxpayerId) => {
    sandbox.arm({ endpoint: 'refreshJob', taxpayerId, fault: { gate: 'held' } });
    return patient.query(readMadeUp(taxpayerId, 60), {}, await headersOf(taxpayerId, taxpayerId));
  });
  try {
    await until(() => sandbox.counters().refreshJob === 256, 60_000);
    const socket = await initSocket(patient, await headersOf('last', last.taxpayerId));
    socket.subscribe({ query: readJob, variables: last });
    socket.send({ type: 'ping' });
    await socket.message('pong'); // by now it waits for a place
    expect(sandbox.tokenCalls(last.taxpayerId)).toBe(0);
    sandbox.release('held');
    const { payload } = await socket.answerTo('1');
    expect(payload).toEqual({ data: { refreshJob: { status: 'PROCESSING' } } });
    socket.end();
  } finally {
    sandbox.disarmAll();
    const letting = setInterval(() => sandbox.release('held'), 20);
    await Promise.all(pages);
    clearInterval(letting);
    await patient.stop();
  }
});

describe('A hundred requests of one caller at once', () => {
  let job: ReturnType<typeof addJob>;
  let headers: Awaited<ReturnType<typeof headersOf>>;
  beforeEach(async () => {
    job = addJob(gateway);
    headers = await headersOf('ada', job.taxpayerId);
  });

  const askAtOnce = async (document: string, variables: object) => {
    const answers = times(100, () => gateway.query(document, variables, headers));
    return (await Promise.all(answers)).map((answer) => codesOf(answer)[0] ?? 'answered');
  };

  it.each(['taxpayerToken', 'refreshJob'] as const)('of %s share one read, also when it fails', async (endpoint) => {
    const ask = () =>
      endpoint === 'refreshJob' ? askAtOnce(readJob, job) : askAtOnce(readRecord, { id: job.taxpayerId });
    // The service takes its time at first, so that the last of a hundred requests has come before the first try is over.
    sandbox.arm({ endpoint, fault: { status: 500, delayMs: 1_000 }, times: 1 });
    sandbox.arm({ endpoint, fault: { status: 500 } });
    expect(await ask()).toEqual(Array(100).fill('UPSTREAM_UNAVAILABLE'));
    expect(sandbox.counters()[endpoint]).toBe(maxTries); // one read with its tries
    sandbox.disarmAll();
    expect(await ask()).toEqual(Array(100).fill('answered'));
    expect(sandbox.counters()[endpoint]).toBe(maxTries + 1);
  });

  it('that join a read leave the places to the reads of other taxpayers', async () => {
    const [slow = '', quick = ''] = sandbox.addTaxpayers(2);
    headers = await headersOf('ada', slow, quick);
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: slow, fault: { gate: 'slow' } });
    let isOver = false;
    const joined = askAtOnce(readRecord, { id: slow }).finally(() => {
      isOver = true;
    });
    await sandbox.whenCalled('taxpayerToken', 1);
    expect((await gateway.query(readRecord, { id: quick }, headers)).errors).toBeUndefined();
    expect(isOver).toBe(false);
    sandbox.disarmAll();
    sandbox.release('slow');
    expect(await joined).toEqual(Array(100).fill('answered'));
  });
});

it('Fields of one request share a read only if they ask for the same', async () => {
  const { one, addTaxpayers, ids } = await startFleet();
  const names = new Set<string>();
  const once = async (name: string) => names.add(name) as never;
  for (const id of addTaxpayers(2)) {
    void one.jobs.status(id, ids.jobId('job'), { once });
    for (const maxAgeMs of [60_000, 120_000]) void one.broker.record(id, { once }, maxAgeMs);
  }
  expect(names.size).toBe(6);
});

it('Creations that wait for one with the same key leave the places to the reads of their caller, and replay its link', async () => {
  const { id } = sandbox.addTaxpayer();
  const authorization = await provider.watcherOf([id], 300, 'client-links:create taxpayers:read');
  const create = 'mutation { createClientLink(input: { idempotencyKey: "the same" }) { replayed } }';
  const ask = () => gateway.query<{ createClientLink: { replayed: boolean } }>(create, {}, { authorization });
  sandbox.arm({ endpoint: 'createClientLink', fault: { gate: 'slow' }, times: 1 });
  const created = times(100, ask);
  await sandbox.whenCalled('createClientLink', 1);
  expect((await gateway.query(readRecord, { id }, { authorization })).errors).toBeUndefined();
  sandbox.release('slow');
  const replayed = (await Promise.all(created)).map(({ data }) => data?.createClientLink.replayed);
  expect(replayed.sort()).toEqual([false, ...Array(99).fill(true)]);
  expect(sandbox.counters().createClientLink).toBe(1);
});

it('A read that waits for a place of a caller whose places are taken is not waited for by another caller', async () => {
  const [last = '', ...others] = sandbox.addTaxpayers(33);
  const [busy, other] = [await headersOf('busy', last, ...others), await headersOf('other', last)];
  for (const taxpayerId of others) sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId, fault: { gate: 'slow' } });
  const held = others.map((id) => gateway.query(readRecord, { id }, busy));
  await sandbox.whenCalled('taxpayerToken', 32);
  const waiting = [last, last].map((id) => gateway.query(readRecord, { id }, busy));
  expect((await gateway.query(readRecord, { id: last }, other)).errors).toBeUndefined();
  sandbox.disarmAll();
  sandbox.release('slow');
  for (const { errors } of await Promise.all([...held, ...waiting])) expect(errors).toBeUndefined();
  expect(sandbox.tokenCalls(last)).toBe(1);
});

it('A read that a refused caller began is made again for another who waited for it', async () => {
  const { one, sandbox, addTaxpayer, addJob } = await startFleet({ BREAKER_RESET_MS: 60_000 });
  const id = addTaxpayer({ status: 'AUTHORIZED' });
  const readAs = (holder: string | undefined, job = addJob(id)) => outcomeOf(one.jobs.status(id, job, { holder }));
  sandbox.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
  for (let n = 0; n < 5; n += 1) expect(await readAs('hostile')).toBe('UPSTREAM_UNAVAILABLE');
  sandbox.disarmAll();
  const job = addJob(id);
  const reads = ['hostile', 'hostile', 'honest', undefined].map((holder) => readAs(holder, job));
  expect(await Promise.all(reads)).toEqual(['UPSTREAM_UNAVAILABLE', 'UPSTREAM_UNAVAILABLE', 'answered', 'answered']);
});
