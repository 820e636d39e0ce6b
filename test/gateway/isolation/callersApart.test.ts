import { beforeEach, describe, expect, it } from '@jest/globals';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { startTrustedProvider } from '../../support/authenticated.js';
import { type Fleet, type Member, outcomeOf, startFleet } from '../../support/fleet.js';
import { startTestGateway } from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';
import { until } from '../../support/until.js';

const provider = await startTrustedProvider();
/** With the limits of a deployment, but no budget. */
const gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' });
beforeEach(() => {
  gateway.sandbox.control.disarmAll();
  gateway.sandbox.control.setLatency(0);
  gateway.sandbox.control.resetCounters();
});

const readJob = 'query ($t: ID!, $j: ID!) { refreshJob(taxpayerId: $t, jobId: $j) { status } }';

describe('A caller whose jobs the service fails on', () => {
  /** A caller, a taxpayer that the caller may see, and reads of jobs of that taxpayer. */
  async function caller(subject: string) {
    const { control } = gateway.sandbox;
    const { id } = control.addTaxpayer({ status: 'AUTHORIZED' });
    const claims = { sub: subject, scope: 'refresh-jobs:read taxpayers:read', taxpayer_ids: [id] };
    const authorization = `Bearer ${await provider.token(claims)}`;
    const ask = async (jobId: string) =>
      (await gateway.query(readJob, { t: id, j: jobId }, { authorization })).errors?.[0]?.extensions.code ?? 'answered';
    return { id, ask, addJob: () => control.addJob({ taxpayerId: id, endsAs: null }).jobId };
  }

  it('has calls refused, while those of every other caller are made', async () => {
    const hostile = await caller('hostile');
    const honest = await caller('honest');
    const { control } = gateway.sandbox;
    control.arm({ endpoint: 'refreshJob', taxpayerId: hostile.id, fault: { status: 500 } });
    for (let n = 0; n < 8; n += 1) expect(await hostile.ask(`bad-${n}`)).toBe('UPSTREAM_UNAVAILABLE');
    const made = control.counters().refreshJob;
    expect(await hostile.ask('bad-again')).toBe('UPSTREAM_UNAVAILABLE');
    expect(control.counters().refreshJob).toBe(made);

    const outcomes = [];
    for (let n = 0; n < 10; n += 1) outcomes.push(await honest.ask(honest.addJob()));
    expect(outcomes).toEqual(Array(10).fill('answered'));
    const page = await (await fetch(`${gateway.origin}/metrics`)).text();
    expect(page).toContain('gateway_breaker_open{endpoint="refreshJob"} 1');
  });
});

describe('An outage of an endpoint', () => {
  it('is found by three callers for all, and costs one trial at a time until one is answered', async () => {
    const resetMs = 60_000;
    const fleet = await startFleet({ breakerResetMs: resetMs });

    const { control } = fleet.sandbox;
    const { jobs, broker } = fleet.members[0] as Member;
    const ids = control.addTaxpayers(20, { status: 'AUTHORIZED' }).map((id) => fleet.ids.taxpayerId(id));
    for (const id of ids) await broker.record(id);
    /** Each of twenty callers reads a job of a taxpayer of its own. */
    const reads = ids.map((id, n) => () => {
      const job = fleet.ids.jobId(control.addJob({ taxpayerId: id, endsAs: null }).jobId);
      return outcomeOf(jobs.status(id, job, undefined, { holder: `caller-${n}` }));
    });
    const outcomesOf = async (run: () => Promise<string[]>) => {
      const before = control.counters().refreshJob;
      const outcomes = [...new Set(await run())];
      return { outcomes, calls: control.counters().refreshJob - before };
    };
    const inTurn = async () => {
      const outcomes = [];
      for (const read of reads) outcomes.push(await read());
      return outcomes;
    };
    const together = () => Promise.all(reads.map((read) => read()));
    control.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
    expect(await outcomesOf(inTurn)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 3 * maxTries });
    fleet.advance(resetMs);
    expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 1 });
    control.disarmAll();
    fleet.advance(resetMs);
    expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE', 'answered'], calls: 1 });
    expect(await outcomesOf(together)).toEqual({ outcomes: ['answered'], calls: 20 });
    // Met by all at once: what is on its way is not called back, and the wait of 4 s before a second try is never used up.
    const slow = { status: 500, headers: { 'retry-after': '4' } };
    control.arm({ endpoint: 'refreshJob', fault: slow, times: 17 });
    control.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
    expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 17 + 3 * maxTries });
    expect(await outcomesOf(together)).toEqual({ outcomes: ['UPSTREAM_UNAVAILABLE'], calls: 0 });
    control.disarmAll();
    fleet.advance(resetMs + 10_000); // nobody has called meanwhile
    expect(await outcomesOf(together)).toEqual({ outcomes: ['answered'], calls: 20 });
  });
});

describe('The breaker of a caller', () => {
  it('opens when five ids fail in a row within ten seconds, for that caller alone: not for one id, nor with an answer between', async () => {
    const fleet = await startFleet({ breakerResetMs: 60_000 });

    const { control } = fleet.sandbox;
    const { jobs } = fleet.members[0] as Member;
    const [good, ...bad] = control.addTaxpayers(6) as [string, ...string[]];
    for (const taxpayerId of bad) control.arm({ endpoint: 'refreshJob', taxpayerId, fault: { status: 500 } });
    const read = (id: string, holder = 'one') => {
      const job = id === good ? control.addJob({ taxpayerId: id, endsAs: null }).jobId : 'bad';
      return outcomeOf(jobs.status(fleet.ids.taxpayerId(id), fleet.ids.jobId(job), undefined, { holder }));
    };
    const fail = async (ids: readonly string[]) => {
      for (const id of ids) expect(await read(id)).toBe('UPSTREAM_UNAVAILABLE');
    };
    await fail(Array(8).fill(bad[0]));
    expect(await read(good)).toBe('answered');
    await fail(bad.slice(1));
    expect(await read(good)).toBe('answered');
    await fail(bad.slice(1));
    fleet.advance(10_000);
    await fail(bad.slice(0, 1));
    expect(await read(good)).toBe('answered');
    await fail(bad);
    expect(await read(good)).toBe('UPSTREAM_UNAVAILABLE');
    expect(await read(good, 'another')).toBe('answered');
    fleet.advance(60_000);
    expect(await read(good)).toBe('answered');
  });
});

describe('A trial that a pause of the fleet refuses', () => {
  it('proves nothing: once the pause is over, one call is the trial for all', async () => {
    const fleet = await startFleet({ size: 2, breakerResetMs: 1000 });

    const [one, two] = fleet.members as [Member, Member];
    const { control } = fleet.sandbox;
    const taxpayers = control.addTaxpayers(20, { status: 'AUTHORIZED' }).map((id) => fleet.ids.taxpayerId(id));
    const read = async ({ jobs, broker }: typeof one, n: number) => {
      const id = taxpayers[n] as (typeof taxpayers)[number];
      await broker.record(id);
      const job = fleet.ids.jobId(control.addJob({ taxpayerId: id, endsAs: null }).jobId);
      return outcomeOf(jobs.status(id, job, undefined, { holder: `caller-${n}` }));
    };
    const together = () => Promise.all(taxpayers.map((_, n) => read(one, n)));
    const outage = control.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
    for (const n of [0, 1, 2]) expect(await read(one, n)).toBe('UPSTREAM_UNAVAILABLE');
    control.disarm(outage);
    control.arm({ endpoint: 'refreshJob', fault: { status: 429, headers: { 'retry-after': '5' } }, times: 1 });
    expect(await read(two, 3)).toBe('UPSTREAM_RATE_LIMITED');
    control.arm({ endpoint: 'refreshJob', fault: { status: 503 } });
    fleet.advance(1000);
    const before = control.counters().refreshJob;
    for (const n of [4, 5]) expect(await read(one, n)).toBe('UPSTREAM_RATE_LIMITED');
    fleet.advance(5000);
    expect(new Set(await together())).toEqual(new Set(['UPSTREAM_UNAVAILABLE']));
    expect(control.counters().refreshJob - before).toBe(1);
  });
});

describe('A caller who asks for more than the service can answer at once', () => {
  it('has a share of the calls under way, and delays nobody else', async () => {
    const { control } = gateway.sandbox;
    const [eve, ada] = control.addTaxpayers(2, { status: 'AUTHORIZED' }) as [string, string];
    const authorizationOf = async (sub: string, id: string) => ({
      authorization: `Bearer ${await provider.token({ sub, scope: 'refresh-jobs:read', taxpayer_ids: [id] })}`,
    });
    const [hostile, honest] = [await authorizationOf('flooding', eve), await authorizationOf('honest', ada)];
    const jobOf = (taxpayerId: string) => control.addJob({ taxpayerId, endsAs: null }).jobId;
    await gateway.query(readJob, { t: eve, j: jobOf(eve) }, hostile);
    await gateway.query(readJob, { t: ada, j: jobOf(ada) }, honest);
    const before = control.counters().refreshJob;
    control.setLatency(300);
    const aliases = (n: number) => {
      const field = (m: number) => `a${m}: refreshJob(taxpayerId: "${eve}", jobId: "made-up-${n}-${m}") { status }`;
      return `{ ${Array.from({ length: 60 }, (_, m) => field(m)).join(' ')} }`;
    };
    // 360 reads, 32 at a time: 3.4 s of work, so that none waits for the 10 s after which it is refused.
    const flood = Promise.all(Array.from({ length: 6 }, (_, n) => gateway.query(aliases(n), {}, hostile)));
    await control.whenCalled('refreshJob', before + 33); // some of them, should a busy machine refuse the others
    const asked = gateway.query<{ refreshJob: { status: string } }>(readJob, { t: ada, j: jobOf(ada) }, honest);
    const first = await Promise.race([
      asked.then(({ data }) => data?.refreshJob.status),
      flood.then(() => 'the flood'),
    ]);
    expect(first).toBe('PROCESSING');
    // 32 of the hostile caller at once: the first 32, and those that took their places meanwhile.
    expect(control.counters().refreshJob - before).toBeLessThan(5 * 64);
    // On a busy machine some of the flood waits too long for its turn, or a whole request takes too much of its time.
    for (const { errors } of await flood) {
      expect([1, 60]).toContain(errors?.length);
      for (const { extensions } of errors ?? []) expect(['NOT_FOUND', 'RATE_LIMITED']).toContain(extensions.code);
    }
  });

  it('has all its places again after some calls have waited too long for one', async () => {
    const hasty = await startTestGateway({ ...provider.env, UPSTREAM_DEADLINE_MS: '4000' });

    const { control } = hasty.sandbox;
    const { id } = control.addTaxpayer({ status: 'AUTHORIZED' });
    const authorization = await provider.watcherOf([id]);
    const { jobId } = control.addJob({ taxpayerId: id, endsAs: null });
    await hasty.query(readJob, { t: id, j: jobId }, { authorization }); // its access token is in memory
    control.setLatency(2500); // the calls of the second turn end after those that wait for a third have given up
    const field = (n: number) => `a${n}: refreshJob(taxpayerId: "${id}", jobId: "made-up-${n}") { status }`;
    const page = (from: number) => `{ ${Array.from({ length: 50 }, (_, n) => field(from + n)).join(' ')} }`;
    const pages = await Promise.all([0, 50].map((from) => hasty.query(page(from), {}, { authorization })));
    const codes = pages.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions.code));
    expect(codes).toEqual(expect.arrayContaining(['NOT_FOUND', 'RATE_LIMITED']));
    control.setLatency(0);
    expect(
      (await hasty.query(page(100), {}, { authorization })).errors?.map(({ extensions }) => extensions.code),
    ).toEqual(Array(50).fill('NOT_FOUND'));
  });
});

describe('A caller who asks while all places of the process are taken', () => {
  it('gets the next one, before those who have some and wait for more', async () => {
    const patient = await startTestGateway({
      ...provider.env,
      ...{ RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' },
      ...{ UPSTREAM_TIMEOUT_MS: '60000', UPSTREAM_DEADLINE_MS: '60000' },
    });
    const { control } = patient.sandbox;
    const [last = '', ...many] = control.addTaxpayers(10, { status: 'AUTHORIZED' });
    const authorizationOf = async (id: string) => ({
      authorization: `Bearer ${await provider.token({ sub: id, scope: 'refresh-jobs:read', taxpayer_ids: [id] })}`,
    });
    const calls = () => control.counters().refreshJob;
    for (const taxpayerId of many) control.arm({ endpoint: 'refreshJob', taxpayerId, fault: { gate: 'held' } });
    const field = (id: string, n: number) => `a${n}: refreshJob(taxpayerId: "${id}", jobId: "made-up-${n}") { status }`;
    const pages = many.map(async (id) => {
      const page = `{ ${Array.from({ length: 60 }, (_, n) => field(id, n)).join(' ')} }`;
      return patient.query(page, {}, await authorizationOf(id));
    });
    try {
      await until(() => calls() === 256, 60_000);
      const { jobId } = control.addJob({ taxpayerId: last, endsAs: null });
      const socket = rawSocket(patient.origin);
      await socket.init(await authorizationOf(last));
      socket.send({ type: 'subscribe', id: 'job', payload: { query: readJob, variables: { t: last, j: jobId } } });
      socket.send({ type: 'ping' });
      await socket.message(({ type }) => type === 'pong'); // by now it waits for a place
      expect(control.tokenCalls(last)).toBe(0);
      control.release('held');
      const { payload } = await socket.message(({ id }) => id === 'job');
      expect(payload).toEqual({ data: { refreshJob: { status: 'PROCESSING' } } });
      socket.end();
    } finally {
      control.disarmAll();
      const letting = setInterval(() => control.release('held'), 20);
      await Promise.all(pages);
      clearInterval(letting);
      await patient.stop();
    }
  });
});

describe('A hundred requests of one caller at once', () => {
  let authorization: string;
  let id: string;
  beforeEach(async () => {
    id = gateway.sandbox.control.addTaxpayer({ status: 'AUTHORIZED' }).id;
    authorization = await provider.watcherOf([id]);
  });
  /** The service takes its time at first, so that the last of a hundred requests has come before the first try is over. */
  function fail(endpoint: 'taxpayerToken' | 'refreshJob') {
    const { control } = gateway.sandbox;
    control.arm({ endpoint, fault: { status: 500, delayMs: 1_000 }, times: 1 });
    control.arm({ endpoint, fault: { status: 500 } });
  }

  const codesOf = async (document: string, variables: object) => {
    const answers = Array.from({ length: 100 }, () => gateway.query(document, variables, { authorization }));
    return (await Promise.all(answers)).map(({ errors }) => errors?.[0]?.extensions.code ?? 'answered');
  };

  it('for one record share one read, also when it fails', async () => {
    const { control } = gateway.sandbox;
    fail('taxpayerToken');
    const readRecord = 'query ($t: ID!) { taxpayerToken(taxpayerId: $t) { status } }';
    expect(await codesOf(readRecord, { t: id })).toEqual(Array(100).fill('UPSTREAM_UNAVAILABLE'));
    expect(control.counters().taxpayerToken).toBe(maxTries); // one read with its tries
    control.disarmAll();
    expect(await codesOf(readRecord, { t: id })).toEqual(Array(100).fill('answered'));
    expect(control.counters().taxpayerToken).toBe(maxTries + 1);
  });

  it('for one job share one read, also when it fails', async () => {
    const { control } = gateway.sandbox;
    const { jobId } = control.addJob({ taxpayerId: id, endsAs: null });
    fail('refreshJob');
    expect(await codesOf(readJob, { t: id, j: jobId })).toEqual(Array(100).fill('UPSTREAM_UNAVAILABLE'));
    expect(control.counters().refreshJob).toBe(maxTries);
  });

  it('that join a read leave the places to the reads of other taxpayers', async () => {
    const { control } = gateway.sandbox;
    const [slow, quick] = control.addTaxpayers(2, { status: 'AUTHORIZED' }) as [string, string];
    authorization = await provider.watcherOf([slow, quick]);
    const readRecord = 'query ($t: ID!) { taxpayerToken(taxpayerId: $t) { status } }';
    control.arm({ endpoint: 'taxpayerToken', taxpayerId: slow, fault: { gate: 'slow' } });
    let isOver = false;
    const joined = codesOf(readRecord, { t: slow }).finally(() => {
      isOver = true;
    });
    await control.whenCalled('taxpayerToken', 1);
    expect((await gateway.query(readRecord, { t: quick }, { authorization })).errors).toBeUndefined();
    expect(isOver).toBe(false);
    control.disarmAll();
    control.release('slow');
    expect(await joined).toEqual(Array(100).fill('answered'));
  });
});

describe('Creations that wait for one with the same key', () => {
  it('leave the places to the reads of their caller, and replay its link', async () => {
    const { control } = gateway.sandbox;
    const { id } = control.addTaxpayer({ status: 'AUTHORIZED' });
    const authorization = await provider.watcherOf([id], 300, 'client-links:create taxpayers:read');
    const create = 'mutation { createClientLink(input: { idempotencyKey: "the same" }) { replayed } }';
    const ask = () => gateway.query<{ createClientLink: { replayed: boolean } }>(create, {}, { authorization });
    control.arm({ endpoint: 'createClientLink', fault: { gate: 'slow' }, times: 1 });
    const created = Array.from({ length: 100 }, ask);
    await control.whenCalled('createClientLink', 1);
    const read = 'query ($t: ID!) { taxpayerToken(taxpayerId: $t) { status } }';
    expect((await gateway.query(read, { t: id }, { authorization })).errors).toBeUndefined();
    control.release('slow');
    const replayed = (await Promise.all(created)).map(({ data }) => data?.createClientLink.replayed);
    expect(replayed.sort()).toEqual([false, ...Array(99).fill(true)]);
    expect(control.counters().createClientLink).toBe(1);
  });
});

describe('A read that waits for a place of a caller whose places are taken', () => {
  it('is not waited for by another caller', async () => {
    const { control } = gateway.sandbox;
    const taxpayers = control.addTaxpayers(33, { status: 'AUTHORIZED' });
    const last = taxpayers.at(-1) ?? '';
    const headersOf = async (sub: string) => ({
      authorization: `Bearer ${await provider.token({ sub, scope: 'taxpayers:read', taxpayer_ids: taxpayers })}`,
    });
    const [busy, other] = [await headersOf('busy'), await headersOf('other')];
    const readRecord = 'query ($t: ID!) { taxpayerToken(taxpayerId: $t) { status } }';
    for (const taxpayerId of taxpayers.slice(0, 32)) {
      control.arm({ endpoint: 'taxpayerToken', taxpayerId, fault: { gate: 'slow' } });
    }
    const held = taxpayers.slice(0, 32).map((t) => gateway.query(readRecord, { t }, busy));
    await control.whenCalled('taxpayerToken', 32);
    const waiting = [last, last].map((t) => gateway.query(readRecord, { t }, busy));
    expect((await gateway.query(readRecord, { t: last }, other)).errors).toBeUndefined();
    control.disarmAll();
    control.release('slow');
    for (const { errors } of await Promise.all([...held, ...waiting])) expect(errors).toBeUndefined();
    expect(control.tokenCalls(last)).toBe(1);
  });
});

describe('A read that a refused caller began', () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet({ breakerResetMs: 60_000 });
  });

  function scene() {
    const [member] = fleet.members;
    if (!member) throw new Error('The fleet has a member');
    const { control } = fleet.sandbox;
    const taxpayer = control.addTaxpayer({ status: 'AUTHORIZED' });
    const id = fleet.ids.taxpayerId(taxpayer.id);
    const addJob = () => fleet.ids.jobId(control.addJob({ taxpayerId: taxpayer.id, endsAs: null }).jobId);
    return { member, control, id, addJob };
  }

  it('is made again for another who waited for it', async () => {
    const { member, control, id, addJob } = scene();
    const fault = control.arm({ endpoint: 'refreshJob', fault: { status: 500 } });
    for (let n = 0; n < 5; n += 1) {
      expect(await outcomeOf(member.jobs.status(id, addJob(), undefined, { holder: 'hostile' }))).toBe(
        'UPSTREAM_UNAVAILABLE',
      );
    }
    control.disarm(fault);
    const job = addJob();
    const reads = ['hostile', 'hostile', 'honest', undefined].map((holder) =>
      outcomeOf(member.jobs.status(id, job, undefined, { holder })),
    );
    expect(await Promise.all(reads)).toEqual(['UPSTREAM_UNAVAILABLE', 'UPSTREAM_UNAVAILABLE', 'answered', 'answered']);
  });
});
