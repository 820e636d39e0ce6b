import { type ConnectOptions, eventStreams, webSockets } from './connect.js';
import type { RefreshJobUpdatedSubscription, TaxpayerTokenUpdatedSubscription } from './generated/graphql.js';
import { type GatewayProblem, problemsOf, retryAfterSeconds, WatchFailed } from './problems.js';

/** One status of a refresh job. */
export type JobUpdate = RefreshJobUpdatedSubscription['refreshJobUpdated'];

/** The token record of a taxpayer at one time; without the access token. */
export type TokenUpdate = TaxpayerTokenUpdatedSubscription['taxpayerTokenUpdated'];

export interface TokenWatchOptions extends ConnectOptions {
  readonly taxpayerId: string;
  /** The caller's access token without `Bearer`; a function gives one per connection, so that the watch outlives a token. */
  readonly token?: string | (() => string | Promise<string>);
  readonly signal?: AbortSignal;
  /** Told before each pause between two connections, in milliseconds: for "reconnecting…" on a page. */
  readonly onReconnect?: (pauseMs: number) => void;
}

export interface WatchOptions extends TokenWatchOptions {
  readonly jobId: string;
}

/**
 * The status of a job now, then each change, never the same twice in a row; ends after a final one. Connects again, with
 * growing pauses, when the connection is lost or the token expired (where `token` is a function). Leaving the loop ends it.
 *
 * @throws WatchFailed when the gateway refuses for a reason that will not pass, such as a token that was never good
 * @throws TypeError when `ws` is wanted where there is neither `openWebSocket` nor a global `WebSocket`
 */
export function watchRefreshJob(options: WatchOptions): AsyncGenerator<JobUpdate, void, undefined> {
  const { taxpayerId, jobId } = options;
  return watch(options, {
    query: refreshJobUpdated,
    variables: { taxpayerId, jobId },
    updateIn: (data: RefreshJobUpdatedSubscription) => data.refreshJobUpdated,
    stateOf: ({ status }) => status,
    finalStatuses: ['COMPLETED', 'FAILED'],
  });
}

/**
 * The token record of a taxpayer now, then each change of it; otherwise as {@link watchRefreshJob}. An unchanged record is
 * not sent again, so `fetchedAt` says when this state was first read.
 */
export function watchTaxpayerToken(options: TokenWatchOptions): AsyncGenerator<TokenUpdate, void, undefined> {
  const { taxpayerId } = options;
  return watch(options, {
    query: taxpayerTokenUpdated,
    variables: { taxpayerId },
    updateIn: (data: TaxpayerTokenUpdatedSubscription) => data.taxpayerTokenUpdated,
    stateOf: ({ fetchedAt, ...record }) => JSON.stringify(record),
    finalStatuses: ['COMPLETED', 'REJECTED'],
  });
}

// As text, because graphql-js, which would print the documents, is as large as the rest of the client.
const refreshJobUpdated = `subscription RefreshJobUpdated($taxpayerId: ID!, $jobId: ID!) {
  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { taxpayerId jobId name status observedAt }
}`;
const taxpayerTokenUpdated = `subscription TaxpayerTokenUpdated($taxpayerId: ID!) {
  taxpayerTokenUpdated(taxpayerId: $taxpayerId) {
    taxpayerId name provider providerId status metadata createdAt fetchedAt stale
  }
}`;

interface Subject<Data, Update> {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly updateIn: (data: Data) => Update | null | undefined;
  /** Two updates in a row with the same state are one. */
  readonly stateOf: (update: Update) => string;
  readonly finalStatuses: readonly string[];
}

async function* watch<Data, Update extends { readonly status: string }>(
  options: TokenWatchOptions,
  { query, variables, updateIn, stateOf, finalStatuses }: Subject<Data, Update>,
): AsyncGenerator<Update, void, undefined> {
  const { token, signal } = options;
  // Before the loop, which takes errors for those of a network that is down.
  const connect = options.transport === 'ws' ? webSockets(options) : eventStreams(options);
  let interrupt: (() => void) | undefined;
  const onAbort = () => interrupt?.();
  signal?.addEventListener('abort', onAbort);
  let lastState: string | undefined;
  let attempt = 0;
  try {
    while (!signal?.aborted) {
      let wantedPauseMs = 0;
      // A token that brought an update and is refused later has expired; asking again after any other could go on for ever.
      let renewable = false;
      try {
        const accessToken = typeof token === 'function' ? await token() : token;
        if (signal?.aborted) return;
        const { results, end } = connect({ query, variables }, accessToken);
        interrupt = end;
        for await (const result of results) {
          wantedPauseMs = Math.max(wantedPauseMs, pauseAfter(result, renewable));
          const { data } = result as { readonly data?: Data | null };
          const update = data && updateIn(data);
          if (!update) continue;
          attempt = 0;
          renewable = typeof token === 'function';
          const state = stateOf(update);
          if (state !== lastState) yield update;
          lastState = state;
          if (finalStatuses.includes(update.status)) return;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof WatchFailed) throw error;
        wantedPauseMs = Math.max(wantedPauseMs, pauseAfter(error, renewable));
      } finally {
        interrupt?.();
      }
      if (signal?.aborted) return;
      const pauseMs = Math.max(wantedPauseMs, Math.min(30_000, 1000 * 2 ** attempt++) * (0.5 + Math.random() / 2));
      options.onReconnect?.(pauseMs);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        interrupt = () => resolve(clearTimeout(timer));
      });
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/** In milliseconds. @throws WatchFailed for a problem that will not pass; UNAUTHENTICATED passes with a `renewable` token */
function pauseAfter(source: unknown, renewable: boolean): number {
  const problems = problemsOf(source);
  const passes = ({ code, retryable }: GatewayProblem) => retryable || (renewable && code === 'UNAUTHENTICATED');
  if (!problems.every(passes)) throw new WatchFailed(problems);
  return 1000 * (retryAfterSeconds(source) ?? 0);
}
