import { performance as counters } from 'node:perf_hooks';
import { jest } from '@jest/globals';
import { Quota } from '../../../src/admission/Quota.js';
import { anyone } from '../../../src/auth/caller.js';
import { type AnswerError, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';
import { times } from '../../support/times.js';

afterEach(() => void jest.restoreAllMocks());

describe('The time that callers share', () => {
  const admit = (quota: Quota, holder: string) =>
    quota.admit({ caller: { ...anyone, holder }, remoteAddress: undefined });

  it('lets everybody go on while the event loop is not busy', () => {
    jest.spyOn(performance, 'now').mockReturnValue(1000); // a test that stands still keeps the event loop busy
    const quota = new Quota(0);
    admit(quota, 'honest');
    admit(quota, 'hostile');
    quota.spend('hostile', 250);
    expect(() => admit(quota, 'hostile')).not.toThrow();
  });

  it('lets a caller who is alone take all, and beside others 100 ms at once, then a tenth, until they are gone for a second', () => {
    let now = 60_000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    jest.spyOn(counters, 'eventLoopUtilization').mockReturnValue({ utilization: 0.5, active: 1, idle: 1 });
    jest.spyOn(process, 'cpuUsage').mockReturnValue({ user: Infinity, system: 0 });
    const quota = new Quota(0);
    /** Whether a busy caller is let in then, after work that took so long; if there was some, another caller asks as well. */
    const isLetIn = (afterMs: number, workMs = 0) => {
      now += afterMs;
      quota.spend('busy', workMs);
      try {
        admit(quota, 'busy');
        return true;
      } catch {
        return false;
      } finally {
        if (workMs > 0) admit(quota, 'another');
      }
    };
    expect([isLetIn(100, 150), isLetIn(0), isLetIn(499), isLetIn(2)]).toEqual([true, false, false, true]);
    expect([isLetIn(0, 1000), isLetIn(0), isLetIn(999), isLetIn(2)]).toEqual([false, false, false, true]);
  });

  it('bills nothing for the time in which the process did not get the processor', async () => {
    const quota = new Quota(0);
    // For long, because other threads of the process may collect garbage meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2800);
    await new Promise((resolve) => setTimeout(resolve, 1)); // lets it be measured
    admit(quota, 'other');
    admit(quota, 'caller');
    quota.spend('caller', 300);
    expect(() => admit(quota, 'caller')).not.toThrow();
  });

  it("lets one caller's work begin in rounds of two milliseconds, that of begun operations first, also while nobody else asks", async () => {
    const quota = new Quota(0);
    expect(quota.turnOf('hostile')).toBeUndefined();
    quota.spend('hostile', 2);
    const begun: string[] = [];
    const begin = (what: string) => {
      begun.push(what);
      quota.spend('hostile', 2);
    };
    const turns = ['first', 'second'].map((what) => quota.turnOf('hostile')?.then(() => begin(what)));
    const reads = quota.resume('hostile', 2).then(() => begun.push('read'));
    expect(quota.turnOf('honest')).toBeUndefined();
    const seen: number[] = [];
    for (let turn = 0; turn < 100; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(begun.length);
    }
    await Promise.all([...turns, reads]);
    expect(begun).toEqual(['read', 'first', 'second']);
    const turnsAt = (count: number) => seen.filter((each) => each === count).length;
    expect(Math.min(turnsAt(0), turnsAt(1), turnsAt(2))).toBeGreaterThanOrEqual(10);
  });

  it('lets nobody wait for the turns of connections that are gone, and refuses an address of which too many wait', async () => {
    const quota = new Quota(0);
    const connections = times(100_001, () => ({ destroyed: false }));
    let turns = 0;
    /** The place of the last connection that is not refused. */
    let last = 100_000;
    const begin = async (connection: { destroyed: boolean }) => {
      const hasBegun = await quota.begin('an address', 2, connection);
      if (!hasBegun) last -= 1;
      return hasBegun && turns;
    };
    const begins = connections.map(begin);
    await begins.at(-1); // by now all that do not wait are refused
    const waiting = last;
    expect(waiting).toBeLessThan(20_000);
    for (const each of connections.slice(1, waiting)) each.destroyed = true;
    for (; turns < 200; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(await begins[waiting]).toBeGreaterThan(0); // the first has used up the round
    expect(await begins[waiting]).toBeLessThan(100);
    expect(new Set((await Promise.all(begins)).slice(1, waiting))).toEqual(new Set([false]));
  });
});

describe('A gateway without a rate limit', () => {
  async function scene() {
    // What a caller is charged is the process's share of the CPU, which other processes leave next to nothing of at times.
    jest.spyOn(process, 'cpuUsage').mockReturnValue({ user: Infinity, system: 0 });
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...provider.env, RATE_LIMIT_PER_MINUTE: '0' });
    const scope = 'taxpayers:read taxpayers:any';
    const headersOf = async (sub: string) => ({ authorization: `Bearer ${await provider.token({ sub, scope })}` });
    const [hostile, honest] = [await headersOf('hostile'), await headersOf('honest')];
    const { id } = gateway.sandbox.addTaxpayer();
    await gateway.query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`, {}, honest); // from now on in memory
    const r = times(200, () => ({ __typename: 'Taxpayer', id }));
    return { gateway, hostile, honest, r };
  }
  const aliases = (count: number, field: string, prefix = 'a') =>
    times(count, (n) => `${prefix}${n}: ${field}`).join(' ');
  const entities = '_entities(representations: $r) { ... on Taxpayer';

  const heavy = (n: number) =>
    `query Q${n}($r: [_Any!]!) { ${entities} { ${aliases(12, 'token { ... @include(if: false) { status } }')} } } }`;

  it.each<[string, number, (n: number, large: readonly string[]) => string]>([
    ['read', 500, (n) => `query Q { ${aliases(60, '__typename', `a${n}_${'x'.repeat(150)}_`)} }`],
    ['execute', 30, heavy],
    ['answer, by large records', 120, (n, large) => `{ taxpayerToken(taxpayerId: "${large[n]}") { status } }`],
  ])(
    'still refuses a caller whose documents take long to %s, while another asks as well',
    async (_, most, documentOf) => {
      const { gateway, hostile, honest, r } = await scene();
      const large = gateway.sandbox.addTaxpayers(120, { metadata: { notes: 'x'.repeat(900_000) } });
      let executed = 0;
      let refusal: AnswerError | undefined;
      for (let n = 0; refusal === undefined && n < 500; n += 4) {
        const asked = await Promise.all([
          ...[0, 1, 2, 3].map((m) => gateway.query(documentOf(n + m, large), { r }, hostile)),
          gateway.query('{ __typename }', {}, honest),
        ]);
        expect(asked.pop()?.errors).toBeUndefined();
        executed += asked.filter(({ status }) => status === 200).length;
        refusal = asked.find(({ status }) => status === 429)?.errors?.[0];
      }
      expect(executed).toBeLessThan(most);
      expect(refusal).toMatchObject({
        message: 'Your operations take too much of the CPU time that all callers share',
        extensions: { code: 'RATE_LIMITED', retryable: true },
      });
    },
  );

  it('refuses also what was let in before its caller had used up the share', async () => {
    const { gateway, hostile, honest, r } = await scene();
    const requests = times(60, (n) => {
      const connection = rawHttp(gateway.origin);
      const body = JSON.stringify({ query: heavy(n), variables: { r } });
      const head = ['POST /graphql HTTP/1.1', 'host: gateway', 'content-type: application/json'];
      connection.write(...head, `authorization: ${hostile.authorization}`, `content-length: ${body.length}`, '', '');
      return { ...connection, body };
    });
    expect((await gateway.query('{ __typename }', {}, honest)).status).toBe(200); // by now all are let in
    for (const { write, body } of requests) write(body);
    const answers = await Promise.all(requests.map(({ answer }) => answer()));
    expect(new Set(answers.map((each) => each?.status))).toEqual(new Set([200, 429]));
  });
});
