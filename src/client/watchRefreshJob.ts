import { print } from 'graphql';
import { eventStream, type StreamRequest } from './eventStream.js';
import { RefreshJobUpdatedDocument, type RefreshJobUpdatedSubscription } from './generated/graphql.js';
import { type GatewayProblem, problemsOf } from './problems.js';
import { type WebSocketLike, webSocketStream } from './webSocketStream.js';

/** One status of a refresh job. */
export type JobUpdate = RefreshJobUpdatedSubscription['refreshJobUpdated'];

export interface WatchOptions {
  /** Address of the gateway's GraphQL endpoint, such as `https://gateway.example/graphql`. */
  readonly url: string;
  readonly taxpayerId: string;
  readonly jobId: string;
  /**
   * The caller's access token without `Bearer`, or what gives a fresh one for each connection; only with the latter can the
   * watch outlive a token.
   */
  readonly token?: string | (() => string | Promise<string>);
  /** `sse` (default) goes through fetch; `ws` through a WebSocket. */
  readonly transport?: 'sse' | 'ws';
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  readonly fetch?: typeof fetch;
  /** Opens a socket; needed for `ws` where there is no global `WebSocket`, as in Node.js 20. */
  readonly openWebSocket?: (url: string, protocol: string) => WebSocketLike;
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
  const { taxpayerId, jobId, signal } = options;
  // Not in the loop, where a TypeError is taken for fetch's when the network is down.
  const connect = connectorOf(options);
  let last: JobUpdate | undefined;
  let attempt = 0;
  while (!signal?.aborted) {
    const connection = new AbortController();
    const leave = () => connection.abort();
    signal?.addEventListener('abort', leave, { once: true });
    let pauseMs: number | undefined;
    // A token that brought a status and is refused later has expired; asking again after any other could go on for ever.
    let renewable = false;
    try {
      const token = typeof options.token === 'function' ? await options.token() : options.token;
      const body = { query, variables: { taxpayerId, jobId } };
      const request: StreamRequest = { url: options.url, token, body, signal: connection.signal };
      for await (const result of connect(request)) {
        const problems = problemsOf(result);
        if (problems.length > 0) pauseMs = pauseAfter(problems, renewable);
        const job = (result as { data?: RefreshJobUpdatedSubscription | null }).data?.refreshJobUpdated;
        if (!job) continue;
        attempt = 0;
        renewable = typeof options.token === 'function';
        if (job.status !== last?.status) yield job;
        last = job;
        if (job.status === 'COMPLETED' || job.status === 'FAILED') return;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof WatchFailed) throw error;
      const problems = problemsOf(error);
      if (problems.length > 0) pauseMs = pauseAfter(problems, renewable);
    } finally {
      signal?.removeEventListener('abort', leave);
      connection.abort();
    }
    if (signal?.aborted) return;
    const grownMs = Math.min(longestPauseMs, firstPauseMs * 2 ** attempt) * (0.5 + Math.random() / 2);
    attempt += 1;
    const pause = Math.max(pauseMs ?? 0, grownMs);
    options.onReconnect?.(pause);
    await sleep(pause, signal);
  }
}

function connectorOf(options: WatchOptions): (request: StreamRequest) => AsyncIterable<unknown> {
  if (options.transport !== 'ws') return (request) => eventStream(request, options.fetch ?? fetch);
  const openWebSocket = options.openWebSocket ?? globalWebSocket();
  return (request) => webSocketStream(request, openWebSocket);
}

function globalWebSocket(): (url: string, protocol: string) => WebSocketLike {
  const { WebSocket } = globalThis as unknown as { WebSocket?: new (url: string, protocol: string) => WebSocketLike };
  if (WebSocket === undefined) throw new TypeError('openWebSocket is needed: this runtime has no WebSocket');
  return (url, protocol) => new WebSocket(url, protocol);
}

/** @throws WatchFailed for a problem that will not pass; being unauthenticated passes with a `renewable` token */
function pauseAfter(problems: readonly GatewayProblem[], renewable: boolean): number {
  const passes = ({ code, retryable }: GatewayProblem) => retryable || (renewable && code === 'UNAUTHENTICATED');
  if (!problems.every(passes)) throw new WatchFailed(problems);
  return 1000 * Math.max(0, ...problems.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0));
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
