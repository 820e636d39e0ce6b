import { print } from 'graphql';
import { type ConnectOptions, connectorOf } from './connect.js';
import { RefreshJobUpdatedDocument, type RefreshJobUpdatedSubscription } from './generated/graphql.js';
import { type GatewayProblem, problemsOf } from './problems.js';

/** One status of a refresh job. */
export type JobUpdate = RefreshJobUpdatedSubscription['refreshJobUpdated'];

export interface WatchOptions extends ConnectOptions {
  readonly taxpayerId: string;
  readonly jobId: string;
  /**
   * The caller's access token without `Bearer`, or what gives a fresh one for each connection; only with the latter can the
   * watch outlive a token.
   */
  readonly token?: string | (() => string | Promise<string>);
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /** Told before each pause between two connections, in milliseconds: for "reconnecting…" on a page. */
  readonly onReconnect?: (pauseMs: number) => void;
}

/** The gateway refused the watch for a reason that will not pass; `problems` say which. */
export class WatchFailed extends Error {
  constructor(readonly problems: readonly GatewayProblem[]) {
    super(problems[0]?.message ?? 'The watch failed');
    this.name = 'WatchFailed';
  }
}

const query = print(RefreshJobUpdatedDocument);
const firstPauseMs = 1000;
const longestPauseMs = 30_000;

/**
 * The status of a job now, then each change; ends after a final one. A lost connection is made again, with growing
 * pauses, and so is one whose token expired, where `token` is a function. A status seen before is not repeated. Leaving the
 * loop ends the connection.
 *
 * @throws WatchFailed when the gateway refuses for a reason that will not pass, such as a token that was never good
 * @throws TypeError when `ws` is wanted where there is no global `WebSocket`, without `openWebSocket`
 */
export async function* watchRefreshJob(options: WatchOptions): AsyncGenerator<JobUpdate, void, undefined> {
  const { taxpayerId, jobId, token, signal } = options;
  // Before the loop, which takes errors for those of a network that is down.
  const connect = connectorOf(options);
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
          wantedPauseMs = pauseAfter(result, renewable) ?? wantedPauseMs;
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
        wantedPauseMs = pauseAfter(error, renewable) ?? wantedPauseMs;
      } finally {
        interrupt?.();
      }
      if (signal?.aborted) return;
      const grownMs = Math.min(longestPauseMs, firstPauseMs * 2 ** attempt) * (0.5 + Math.random() / 2);
      attempt += 1;
      const pauseMs = Math.max(wantedPauseMs, grownMs);
      options.onReconnect?.(pauseMs);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        interrupt = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * How long the problems in `source` ask to wait, in milliseconds; undefined when there are none.
 *
 * @throws WatchFailed for a problem that will not pass; being unauthenticated passes with a `renewable` token
 */
function pauseAfter(source: unknown, renewable: boolean): number | undefined {
  const problems = problemsOf(source);
  const passes = ({ code, retryable }: GatewayProblem) => retryable || (renewable && code === 'UNAUTHENTICATED');
  if (!problems.every(passes)) throw new WatchFailed(problems);
  if (problems.length === 0) return undefined;
  return 1000 * Math.max(...problems.map((problem) => problem.retryAfterSeconds ?? 0));
}
