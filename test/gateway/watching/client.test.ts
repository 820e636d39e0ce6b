import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type GraphQLEnumType, type GraphQLObjectType, print } from 'graphql';
import {
  type ErrorCode,
  errorCodeOf,
  isRetryable,
  type JobUpdate,
  problemsOf,
  RefreshJobDocument,
  retryAfterSeconds,
  TaxpayerTokenDocument,
  type TokenUpdate,
  watchRefreshJob,
  watchTaxpayerToken,
} from '../../../packages/client/src/index.js';
import { untilEnd } from '../../support/atEnd.js';
import {
  post,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type TrustedProvider,
} from '../../support/gateway.js';
import { addJob } from '../../support/liveJob.js';
import { read } from '../../support/repository.js';
import { schema } from '../../support/schema.js';
import { serve } from '../../support/serve.js';
import { postEvents } from '../../support/streamReader.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

describe('Errors as the typed client reads them', () => {
  let running: TestGateway;
  beforeEach(async () => {
    running = await startTestGateway({ TOKEN_BUDGET_PER_HOUR: '1' });
  });

  /** The first call uses up the token budget, the second is refused by it. */
  const ask = async (taxpayerId: string) => {
    const body = { query: print(TaxpayerTokenDocument), variables: { taxpayerId } };
    return (await post(`${running.origin}/graphql`, body)).json();
  };

  it('have code, retryability and time', async () => {
    const { created, authorized } = running.sandbox.demo.taxpayerIds;
    const first = await ask(created);
    expect(problemsOf(first)).toEqual([]);
    const error = await ask(authorized);
    const code: ErrorCode | undefined = errorCodeOf(error);
    expect(code).toBe('TOKEN_BUDGET_EXHAUSTED');
    expect(isRetryable(error)).toBe(true);
    expect(retryAfterSeconds(error)).toBeGreaterThan(0);
    expect(problemsOf(error)[0]).toMatchObject({ path: ['taxpayerToken'], requestId: expect.any(String) });
  });

  it('tell what is wrong with the input', async () => {
    const error = await ask('');
    expect(errorCodeOf(error)).toBe('BAD_USER_INPUT');
    expect(isRetryable(error)).toBe(false);
    expect(problemsOf(error)[0]?.violations).toMatchObject([{ path: 'taxpayerId' }]);
  });

  it('are retryable when the network is down', async () => {
    await running.stop();
    const error = await ask('x').catch((failure: unknown) => failure);
    expect(problemsOf(error)).toEqual([]);
    expect(isRetryable(error)).toBe(true);
    expect(retryAfterSeconds(error)).toBeUndefined();
  });

  it('are retryable when the connection breaks in the middle of an answer', async () => {
    const cut = createServer((_, response) => {
      response.writeHead(200, { 'content-length': 9 }).write('{', () => response.destroy());
    });
    const response = await fetch(await serve(cut));
    expect(isRetryable(await response.json().catch((failure: unknown) => failure))).toBe(true);
  });
});

it('The documents of the typed client have types for their variables', () => {
  // @ts-expect-error the job's id is needed
  const variables: Parameters<NonNullable<(typeof RefreshJobDocument)['__apiType']>>[0] = { taxpayerId: 'x' };
  expect(variables).toBeDefined();
});

it('A watch fails at once where no gateway is', async () => {
  const url = `${(await startTestGateway()).origin}/elsewhere`;
  const watch = (options: object) => watchRefreshJob({ url, taxpayerId: 'x', jobId: 'y', ...options });
  await expect(watch({}).next()).rejects.toThrow('The gateway answered with status 404');
  const page = async () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
  await expect(watch({ fetch: page }).next()).rejects.toThrow('The gateway answered with status 200 and text/html');
});

it('A watch ends for a code of a later gateway, which trying again cannot cure', async () => {
  const error = { message: 'm', extensions: { code: 'CODE_OF_A_LATER_GATEWAY', retryable: false } };
  const later = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`event: next\ndata: ${JSON.stringify({ errors: [error] })}\n\nevent: complete\ndata:\n\n`);
  });
  const watch = watchRefreshJob({ url: `${await serve(later)}/graphql`, taxpayerId: 'x', jobId: 'y' });
  expect(errorCodeOf(await watch.next().catch((failed: unknown) => failed))).toBe('CODE_OF_A_LATER_GATEWAY');
});

describe('A watch that outlives its connection', () => {
  const itMostlyWaits = together();
  const unauthenticated = { name: 'WatchFailed', problems: [{ code: 'UNAUTHENTICATED' }] };
  let provider: TrustedProvider;
  let guarded: TestGateway;
  let live: TestGateway;
  const signal = untilEnd();
  beforeAll(async () => {
    provider = await startTrustedProvider();
    guarded = await startTestGateway({ ...provider.env, ...quickPolls });
    live = await startTestGateway({ TOKEN_FRESH_SECONDS: '1' }, {}, { watchMaxMs: 2000 });
  });

  const watchGuarded = (job: ReturnType<typeof addJob>, overrides: object) =>
    watchRefreshJob({ url: `${guarded.origin}/graphql`, ...job, signal, ...overrides });
  const tokenFor = ({ taxpayerId }: ReturnType<typeof addJob>, seconds: number) => {
    const claims = { scope: 'refresh-jobs:read', taxpayer_ids: [taxpayerId] };
    return provider.token({ ...claims, exp: Date.now() / 1000 + seconds });
  };

  itMostlyWaits(
    'asks for a new token when one has expired, again if it gets that one once more, and repeats no status',
    async () => {
      const job = addJob(guarded);
      const first = await tokenFor(job, 2);
      let asked = 0;
      const token = () => (asked++ < 2 ? first : tokenFor(job, 300));
      let reconnects = 0;
      const onReconnect = () => {
        reconnects += 1;
        if (reconnects === 2) guarded.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
      };
      const seen: JobUpdate['status'][] = [];
      for await (const { status } of watchGuarded(job, { token, onReconnect })) seen.push(status);
      expect(seen).toEqual(['PROCESSING', 'COMPLETED']);
      expect(asked).toBe(3);
    },
  );

  itMostlyWaits('fails when new tokens are refused again and again', async () => {
    const job = addJob(guarded);
    let asked = 0;
    const token = () => (asked++ === 0 ? tokenFor(job, 2) : 'refused');
    const updates = watchGuarded(job, { token });
    expect((await updates.next()).value).toMatchObject({ status: 'PROCESSING' });
    await expect(updates.next()).rejects.toMatchObject(unauthenticated);
    expect(asked).toBe(4);
  });

  const watchRecord = (taxpayerId: string) => watchTaxpayerToken({ url: `${live.origin}/graphql`, taxpayerId });

  itMostlyWaits(
    'gives the record now and each change, over as many connections as it takes, and ends after a final status',
    async () => {
      const { sandbox } = live;
      const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED', name: 'First' });
      const updates = watchRecord(id);
      const first = (await updates.next()).value as TokenUpdate;
      expect(first).toMatchObject({ taxpayerId: id, status: 'AUTHORIZED', name: 'First' });
      expect(first).not.toHaveProperty('accessToken');
      const second = updates.next();
      await until(() => sandbox.tokenCalls(id) >= 4, 15_000); // longer than one subscription lasts
      sandbox.updateTaxpayer(id, { name: 'Second' });
      expect((await second).value).toMatchObject({ status: 'AUTHORIZED', name: 'Second' });
      const third = updates.next();
      sandbox.updateTaxpayer(id, { status: 'COMPLETED' });
      expect((await third).value).toMatchObject({ status: 'COMPLETED' });
      expect((await updates.next()).done).toBe(true);
    },
  );
});

it.each(['refreshJobUpdated', 'taxpayerTokenUpdated'] as const)(
  '%s and its watch end after each status that the schema calls final, and the pages name the same',
  async (field) => {
    const isOfJob = field === 'refreshJobUpdated';
    const gateway = await startTestGateway(quickPolls);
    const { sandbox } = gateway;
    const { description } = (schema.getSubscriptionType() as GraphQLObjectType).getFields()[field] ?? {};
    const type = schema.getType(isOfJob ? 'RefreshJobStatus' : 'TaxpayerStatus') as GraphQLEnumType;
    const final = type.getValues().flatMap((value) => (value.description?.includes('Final:') ? value.name : []));
    expect(read('docs/live-updates.md')).toMatch(new RegExp(`^\\| .${field}.* \\| ${final.join(', ')} \\|`, 'm'));
    for (const status of final) {
      expect(description).toContain(status);
      const { taxpayerId, jobId } = addJob(gateway);
      if (isOfJob) sandbox.updateJob(taxpayerId, jobId, { status: status.toLowerCase() });
      else sandbox.updateTaxpayer(taxpayerId, { status });
      const ids = `taxpayerId: "${taxpayerId}"${isOfJob ? `, jobId: "${jobId}"` : ''}`;
      const events = await postEvents(gateway, { query: `subscription { ${field}(${ids}) { status } }` });
      expect(await events.text()).toContain('event: complete');
      const onReconnect = () => {
        throw new Error(`${status} is not final for the client`);
      };
      const options = { url: `${gateway.origin}/graphql`, taxpayerId, jobId, onReconnect };
      const seen: string[] = [];
      for await (const shown of isOfJob ? watchRefreshJob(options) : watchTaxpayerToken(options))
        seen.push(shown.status);
      expect(seen).toEqual([status]);
    }
  },
  20_000,
);

it.each(['its signal', 'return()'])(
  'A watch that %s ends while it waits is over at once, and its connection is closed',
  async (end) => {
    for (const isOpen of [false, true]) {
      const silent = createServer();
      const silentUrl = await serve(silent);
      const connecting = once(silent, 'request');
      const ending = new AbortController();
      const updates = watchRefreshJob({ url: silentUrl, taxpayerId: 'x', jobId: 'y', signal: ending.signal });
      const next = updates.next();
      const [, response] = (await connecting) as [IncomingMessage, ServerResponse];
      if (isOpen) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      const closed = new Promise((resolve) => response.once('close', resolve));
      if (end === 'return()') expect(await updates.return()).toEqual({ value: undefined, done: true });
      else ending.abort();
      expect(await next).toEqual({ value: undefined, done: true });
      await closed;
    }
  },
);
