import { type ErrorCode, errorCodes } from './generated/errorCodes.js';

/** One error of an answer, as the gateway sends it. */
export interface GatewayProblem {
  readonly code: ErrorCode;
  /** For people who read logs; decide by `code`. */
  readonly message: string;
  readonly retryable: boolean;
  /** When to try again, in whole seconds from when the answer arrived. */
  readonly retryAfterSeconds: number | undefined;
  /** What to quote when asking the gateway's operators. */
  readonly requestId: string | undefined;
  /** What was wrong with the input: where, and what was expected. */
  readonly violations: readonly { readonly path: string; readonly message: string }[];
  readonly path: readonly (string | number)[] | undefined;
}

/** The gateway refused the watch for a permanent reason; `problems` say which. */
export class WatchFailed extends Error {
  override readonly name = 'WatchFailed';
  constructor(readonly problems: readonly GatewayProblem[]) {
    super(problems[0]?.message);
  }
}

/**
 * Everything the gateway reported, in its order. `source` is an error of Apollo Client 4 or 3, urql, Relay or graphql-request, a
 * {@link WatchFailed}, the body of an answer, its `errors`, one of them, or the close event of a WebSocket. Empty when nothing came from the gateway, as when the network is down.
 */
export function problemsOf(source: unknown): readonly GatewayProblem[] {
  return problemsWithin(source, maxNesting);
}

/** The code of the first problem in `source`. */
export function errorCodeOf(source: unknown): ErrorCode | undefined {
  return problemsOf(source)[0]?.code;
}

/**
 * Whether the same request may succeed when sent again: every problem is retryable, or the network or a proxy failed. A mutation
 * needs an `idempotencyKey` to be repeated safely.
 */
export function isRetryable(source: unknown): boolean {
  const problems = problemsOf(source);
  return problems.length > 0 ? problems.every(({ retryable }) => retryable) : isNetworkFailure(source, maxNesting);
}

/** The longest time the gateway asked to wait before trying again, in seconds; undefined when it named none. */
export function retryAfterSeconds(source: unknown): number | undefined {
  const times = problemsOf(source).flatMap((problem) => problem.retryAfterSeconds ?? []);
  return times.length > 0 ? Math.max(...times) : undefined;
}

/** How deep errors are searched for in each other; some contain themselves. */
const maxNesting = 10;

function problemsWithin(source: unknown, nesting: number): readonly GatewayProblem[] {
  if (nesting === 0 || !isObject(source)) return [];
  if (Array.isArray(source)) return source.flatMap((each) => problemsWithin(each, nesting - 1));
  if (source instanceof WatchFailed) return source.problems;
  const own = problemOf(source);
  if (own !== undefined) return [own];
  for (const key of ['errors', 'graphQLErrors', 'networkError', 'result', 'response', 'source', 'cause']) {
    const found = problemsWithin(source[key], nesting - 1);
    if (found.length > 0) return found;
  }
  return [];
}

function problemOf(source: Readonly<Record<string, unknown>>): GatewayProblem | undefined {
  const { code: closeCode, message, path } = source;
  // A WebSocket refuses a token by the code of its close event, of which Apollo Client makes an error.
  const isRefused = /^(Socket closed with event )?440[13]\b/.test(String(closeCode ?? message));
  const extensions = isRefused ? { code: 'UNAUTHENTICATED' } : source['extensions'];
  if (!isObject(extensions)) return undefined;
  const { retryable: given, retryAfterSeconds: seconds, requestId, violations } = extensions;
  const code = extensions['code'] as ErrorCode; // of a later gateway, perhaps another: it says whether that is retryable
  const retryable = typeof given === 'boolean' ? given : errorCodes[code]?.retryable;
  if (typeof code !== 'string' || retryable === undefined) return undefined;
  return {
    code,
    message: typeof message === 'string' ? message : code,
    retryable,
    retryAfterSeconds: typeof seconds === 'number' ? seconds : undefined,
    requestId: typeof requestId === 'string' ? requestId : undefined,
    violations: Array.isArray(violations) ? violations : [],
    path: Array.isArray(path) ? path : undefined,
  };
}

/** A lost connection, in whole words (not `fetchedAt`) of engines and clients; a proxy's 502 to 504; an event of a WebSocket. */
function isNetworkFailure(source: unknown, nesting: number): boolean {
  if (nesting === 0 || !isObject(source)) return false;
  const { name, message, status, statusCode = status, type, target, code = message } = source;
  const lost = /^(Type|Network)Error .*\b(fetch|network|load failed|terminated|(input|active) streams?)\b/i;
  if (lost.test(`${name} ${message}`)) return true;
  if (/^(ECONN|ENOTFOUND|EAI_AGAIN|Connection\w)|^Network connection|from connection$/.test(String(code))) return true;
  if (/^Socket closed$|^premature end|^(Socket closed with event )?10(0[156]|1[234])\b/.test(String(code))) return true;
  if ([502, 503, 504].includes(Number(statusCode)) || (type === 'error' && target)) return true;
  return ['networkError', 'cause', 'response'].some((key) => isNetworkFailure(source[key], nesting - 1));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
