import { print } from 'graphql';
import { type ConnectOptions, eventStreams, webSockets } from './connect.js';
import { RefreshJobUpdatedDocument, type RefreshJobUpdatedSubscription } from './generated/graphql.js';
import { type GatewayProblem, problemsOf, retryAfterSeconds } from './problems.js';

/** One status of a refresh job. */
export type JobUpdate = RefreshJobUpdatedSubscription['refreshJobUpdated'];

export interface WatchOptions extends ConnectOptions {
  readonly taxpayerId: string;
  readonly jobId: string;
  /** The caller's access token without `Bearer`; a function gives one per connection, so that the watch outlives a token. */
  readonly token?: string | (() => string | Promise<string>);
  readonly signal?: AbortSignal;
  /** Told before each pause between two connections, in milliseconds: for "reconnecting…" on a page. */
  readonly onReconnect?: (pauseMs: number) => void;
}

/** The gateway refused the watch for a reason that will not pass; `problems` say which. */
export class WatchFailed extends Error {
  override readonly name = 'WatchFailed';
  constructor(readonly problems: readonly GatewayProblem[]) {
    super(problems[0]?.message);
  }
}

const query = print(RefreshJobUpdatedDocument);

/**
 * The status of a job now, then each change, never the same twice in a row; ends after a final one. Connects again, with
 * growing pauses, when the connection is lost or the token expired (where `token` is a function). Leaving the loop ends it.
 *
 * @throws WatchFailed when the gateway refuses for a reason that will not pass, such as a token that was never good
 * @throws TypeError when `ws` is wanted where there is neither `openWebSocket` nor a global `WebSocket`
 */
export async function* watchRefreshJob(options: WatchOptions): AsyncGenerator<JobUpdate, void, undefined> {
  const { taxpayerId, jobId, token, signal } = options;
  // Before the loop, which takes errors for those of a network that is down.
  const connect = options.transport === 'ws' ? webSockets(options) : eventStreams(options);
  let interrupt: (() => void) | undefined;
  const onAbort = () => interrupt?.();
  signal?.addEventListener('abort', onAbort);
  let lastStatus: JobUpdate['status'] | undefined;
  let attempt = 0;
  try {
    while (!signal?.aborted) {
      let wantedPauseMs = 0;
      // A token that brought a status and is refused later has expired; asking again after any other could go on for ever.
      let renewable = false;
      try {
        const accessToken = typeof token === 'function' ? await token() : token;
        if (signal?.aborted) return;
        const { results, end } = connect({ query, variables: { taxpayerId, jobId } }, accessToken);
        interrupt = end;
        for await (const result of results) {
          wantedPauseMs = Math.max(wantedPauseMs, pauseAfter(result, renewable));
          const job = (result as { data?: RefreshJobUpdatedSubscription | null }).data?.refreshJobUpdated;
          if (!job) continue;
          attempt = 0;
          renewable = typeof token === 'function';
          if (job.status !== lastStatus) yield job;
          lastStatus = job.status;
          if (job.status === 'COMPLETED' || job.status === 'FAILED') return;
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
