import { print } from 'graphql';
import { addressOf, type ConnectOptions, subscribe } from './connect.js';
import { RefreshJobUpdatedDocument, TaxpayerTokenUpdatedDocument } from './generated/graphql.js';
import type { RefreshJobUpdatedSubscription, TaxpayerTokenUpdatedSubscription } from './generated/strict.js';
import { errorCodeOf, isRetryable, problemsOf, retryAfterSeconds, WatchFailed } from './problems.js';

/** One status of a refresh job. */
export type JobUpdate = RefreshJobUpdatedSubscription['refreshJobUpdated'];

/** The token record of a taxpayer at one time; without the access token. A part that the service got wrong is null. */
export type TokenUpdate = TaxpayerTokenUpdatedSubscription['taxpayerTokenUpdated'];

export interface TokenWatchOptions extends ConnectOptions {
  readonly taxpayerId: string;
  /** The caller's access token without `Bearer`; a function gives one per connection, so that the watch outlives a token. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called before each pause between connections. `cause`: why one ended, for {@link problemsOf}; undefined without an error. */
  readonly onReconnect?: ((pauseMs: number, cause: unknown) => void) | undefined;
  /** Called when a connection works again, even if it brings no change: takes "reconnecting…" off a page. */
  readonly onReconnected?: (() => void) | undefined;
}

export interface WatchOptions extends TokenWatchOptions {
  readonly jobId: string;
}

/**
 * Yields the status of a job now, then each change, never the same twice in a row; ends after a final status. Reconnects,
 * with growing pauses, when the connection is lost or silent for 40 seconds, or the token has expired (if `token` is a function).
 * Leaving the loop, or `return()`, ends it. Passes on what callbacks throw, and `token`, unless {@link isRetryable}.
 * @throws WatchFailed when the gateway refuses for a permanent reason, such as a token that was never valid
 * @throws TypeError when `url` is no address, or `token` no token; Error when another server answers there
 */
export function watchRefreshJob(options: WatchOptions): AsyncGenerator<JobUpdate, void, undefined> {
  return watch(options, {
    query: print(RefreshJobUpdatedDocument),
    variables: { taxpayerId: options.taxpayerId, jobId: options.jobId },
    updateIn: (data: RefreshJobUpdatedSubscription) => data.refreshJobUpdated,
    stateOf: ({ status }) => status,
    finalStatuses: ['COMPLETED', 'FAILED'],
  });
}

/**
 * Yields the token record of a taxpayer now, then each change; otherwise as {@link watchRefreshJob}. An unchanged record is
 * not sent again, so `fetchedAt` says when this state was first read.
 */
export function watchTaxpayerToken(options: TokenWatchOptions): AsyncGenerator<TokenUpdate, void, undefined> {
  return watch(options, {
    query: print(TaxpayerTokenUpdatedDocument),
    variables: { taxpayerId: options.taxpayerId },
    updateIn: (data: TaxpayerTokenUpdatedSubscription) => data.taxpayerTokenUpdated,
    stateOf: ({ fetchedAt, ...record }) => JSON.stringify(record),
    finalStatuses: ['COMPLETED', 'REJECTED'],
  });
}

interface Subject<Data, Update> {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly updateIn: (data: Data) => Update | null | undefined;
  /** Of several updates in a row with the same state only the first is yielded. */
  readonly stateOf: (update: Update) => string;
  readonly finalStatuses: readonly string[];
}

function watch<Data, Update extends { readonly status: string }>(
  options: TokenWatchOptions,
  subject: Subject<Data, Update>,
): AsyncGenerator<Update, void, undefined> {
  const ending = new AbortController();
  const updates = updatesOf(options, subject, ending);
  const leave = updates.return.bind(updates);
  updates.return = (value) => {
    ending.abort(); // `leave` alone would wait for the next update
    return leave(value);
  };
  return updates;
}

async function* updatesOf<Data, Update extends { readonly status: string }>(
  { url, fetch, token, signal, onReconnect, onReconnected }: TokenWatchOptions,
  { query, variables, updateIn, stateOf, finalStatuses }: Subject<Data, Update>,
  ending: AbortController,
): AsyncGenerator<Update, void, undefined> {
  const address = addressOf(url);
  const ended = ending.signal;
  const aborted = new Promise<undefined>((resolve) => ended.addEventListener('abort', () => resolve(undefined)));
  const abort = () => ending.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  let lastState: string | undefined;
  let attempt = 0;
  // How many refused tokens in a row count as expired: `token` may give the old one again. None before the first update.
  let renewals = 0;
  try {
    while (!ended.aborted) {
      let cause: unknown;
      const note = (error: unknown): undefined => {
        if (!isRetryable(error)) throw error;
        cause = error;
      };
      const accessToken = typeof token === 'function' ? await Promise.race([token(), aborted]).catch(note) : token;
      if (/[^!-~]/.test(accessToken ?? ''))
        throw new TypeError('token must be ASCII without spaces and line breaks, and so without "Bearer"');
      const received = cause ? [] : subscribe<Data>(address, { query, variables }, accessToken, ended, fetch);
      for await (const { result, failure } of received) {
        if (ended.aborted) return;
        const update = result?.data && updateIn(result.data);
        if (failure) cause ??= failure;
        else cause = update ? undefined : result; // beside an update, errors only say why parts of it are null
        throwIfPermanent(cause, renewals > 0);
        // Later, a proxy may answer so for a moment; at first, it is not the address of a gateway.
        if (lastState === undefined && failure?.isElsewhere) throw failure;
        if (!update) continue;
        if (attempt > 0) onReconnected?.();
        attempt = 0;
        renewals = typeof token === 'function' ? 3 : 0;
        const state = stateOf(update);
        if (state !== lastState) yield update;
        lastState = state;
        if (finalStatuses.includes(update.status)) return;
      }
      if (errorCodeOf(cause) === 'UNAUTHENTICATED') renewals -= 1;
      const askedMs = 1000 * (retryAfterSeconds(cause) ?? 0);
      const pauseMs = Math.max(askedMs, Math.min(30_000, 1000 * 2 ** attempt++) * (0.5 + Math.random() / 2));
      onReconnect?.(pauseMs, cause);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        aborted.then(() => clearTimeout(timer)).then(resolve);
      });
    }
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** @throws WatchFailed for a permanent problem; UNAUTHENTICATED is not permanent with a `renewable` token */
function throwIfPermanent(source: unknown, renewable: boolean): void {
  const problems = problemsOf(source);
  const isPassing = problems.every(({ code, retryable }) => retryable || (renewable && code === 'UNAUTHENTICATED'));
  if (!isPassing) throw new WatchFailed(problems);
}
