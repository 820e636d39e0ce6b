import { ApolloClient, HttpLink, InMemoryCache } from '@apollo/client';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Client, fetchExchange } from '@urql/core';
import { print } from 'graphql';
import { WebSocket } from 'ws';
import {
  type ErrorCode,
  errorCodeOf,
  isRetryable,
  type JobUpdate,
  problemsOf,
  RefreshJobDocument,
  retryAfterSeconds,
  TaxpayerTokenDocument,
  WatchFailed,
  type WebSocketLike,
  watchRefreshJob,
} from '../src/client/index.js';
import { startTestGateway, type TestGateway } from './support/gateway.js';

let running: TestGateway;
let url: string;
beforeEach(async () => {
  running = await startTestGateway({ TOKEN_BUDGET_PER_HOUR: '1', JOB_POLL_MIN_MS: '50' }, { jobDurationMs: 400 });
  url = `${running.origin}/graphql`;
});
afterEach(() => running.stop());

const openWebSocket = (address: string, protocol: string) =>
  new WebSocket(address, protocol) as unknown as WebSocketLike;

describe('Errors as the typed client reads them', () => {
  /** The first read spends the budget, the second meets it. */
  const exhausted: Record<string, (taxpayerId: string) => Promise<unknown>> = {
    'Apollo Client': async (taxpayerId) => {
      const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache() });
      return client.query({ query: TaxpayerTokenDocument, variables: { taxpayerId } }).then(
        () => undefined,
        (error: unknown) => error,
      );
    },
    urql: async (taxpayerId) => {
      const client = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
      return (await client.query(TaxpayerTokenDocument, { taxpayerId }).toPromise()).error;
    },
    'plain fetch': async (taxpayerId) => {
      const body = JSON.stringify({ query: print(TaxpayerTokenDocument), variables: { taxpayerId } });
      return (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json();
    },
  };

  it.each(Object.keys(exhausted))('have code, retryability and time with %s', async (name) => {
    const { created, authorized } = running.sandbox.demo.taxpayerIds;
    const first = await exhausted[name]?.(created);
    expect(problemsOf(first)).toEqual([]);
    const error = await exhausted[name]?.(authorized);
    const code: ErrorCode | undefined = errorCodeOf(error);
    expect(code).toBe('TOKEN_BUDGET_EXHAUSTED');
    expect(isRetryable(error)).toBe(true);
    expect(retryAfterSeconds(error)).toBeGreaterThan(0);
    expect(problemsOf(error)[0]).toMatchObject({ path: ['taxpayerToken'], requestId: expect.any(String) });
  });

  it('tell what is wrong with the input', async () => {
    const error = await exhausted['plain fetch']?.('');
    expect(errorCodeOf(error)).toBe('BAD_USER_INPUT');
    expect(isRetryable(error)).toBe(false);
    expect(problemsOf(error)[0]?.violations).toMatchObject([{ path: 'taxpayerId' }]);
  });

  it('leave a network that is down to be tried again, and know nothing of other errors', async () => {
    await running.stop();
    const error = await exhausted['plain fetch']?.('x').catch((failure: unknown) => failure);
    expect(problemsOf(error)).toEqual([]);
    expect(isRetryable(error)).toBe(true);
    expect(isRetryable(new Error('a bug of the app'))).toBe(false);
    expect(retryAfterSeconds(error)).toBeUndefined();
  });

  it('has types for every document', () => {
    // @ts-expect-error the job's id is needed
    const variables: Parameters<NonNullable<(typeof RefreshJobDocument)['__apiType']>>[0] = { taxpayerId: 'x' };
    expect(variables).toBeDefined();
  });
});

describe.each(['sse', 'ws'] as const)('watchRefreshJob over %s', (transport) => {
  const watch = (overrides: object = {}) => {
    const { taxpayerId, jobId } = running.sandbox.demo.jobs.processing;
    return watchRefreshJob({ url, taxpayerId, jobId, transport, openWebSocket, ...overrides });
  };

  it('gives the status now and each change, and ends after the final one', async () => {
    const seen: JobUpdate['status'][] = [];
    for await (const { status } of watch()) seen.push(status);
    expect(seen).toEqual(['PROCESSING', 'COMPLETED']);
  });

  it('fails for a reason that will not pass', async () => {
    const updates = watch({ jobId: 'no-such-job' });
    const failure = await updates.next().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(WatchFailed);
    expect((failure as WatchFailed).problems[0]?.code).toBe('NOT_FOUND');
  });

  it('ends when it is told to', async () => {
    const ending = new AbortController();
    const updates = watch({ signal: ending.signal, jobId: running.sandbox.demo.jobs.processing.jobId });
    expect((await updates.next()).value).toMatchObject({ status: 'PROCESSING' });
    ending.abort();
    expect((await updates.next()).done).toBe(true);
  });

  it('connects again when the gateway is replaced, and repeats no status', async () => {
    const { taxpayerId, jobId } = running.sandbox.demo.jobs.processing;
    running.sandbox.control.updateJob(taxpayerId, jobId, { status: 'processing' });
    const reconnects: number[] = [];
    const updates = watch({ onReconnect: (pauseMs: number) => reconnects.push(pauseMs) });
    expect((await updates.next()).value).toMatchObject({ status: 'PROCESSING' });
    const port = String(running.gateway.port);
    const rest = updates.next();
    await running.gateway.stop();
    running.sandbox.control.updateJob(taxpayerId, jobId, { status: 'completed' });
    const { startGateway } = await import('../src/server.js');
    const { loadConfig } = await import('../src/config.js');
    const { environmentFor } = await import('./support/gateway.js');
    const config = loadConfig({ ...environmentFor(running.sandbox), CACHE_URL: 'memory:', PORT: port });
    const next = await startGateway(config, { logDestination: { write: () => {} } });
    try {
      expect((await rest).value).toMatchObject({ status: 'COMPLETED' });
      expect((await updates.next()).done).toBe(true);
      expect(reconnects.length).toBeGreaterThan(0);
    } finally {
      await next.stop();
    }
  });
});
