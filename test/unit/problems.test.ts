import {
  errorCodeOf,
  isRetryable,
  problemsOf,
  retryAfterSeconds,
  watchRefreshJob,
} from '../../packages/client/src/index.js';

const problem = {
  message: 'Too many calls',
  extensions: { code: 'UPSTREAM_RATE_LIMITED', retryable: true, retryAfterSeconds: 7 },
};

it('Errors that hold themselves come from no gateway, and are searched for the problem beside the cycle', () => {
  const cyclic: Record<string, unknown> = { name: 'TypeError', message: "null has no 'fetchedAt'" };
  cyclic['cause'] = cyclic;
  expect(problemsOf(cyclic)).toEqual([]);
  const error = { source: cyclic, cause: new Error('failed', { cause: { errors: [problem] } }) };
  expect(errorCodeOf(error)).toBe('UPSTREAM_RATE_LIMITED');
  expect([cyclic, error].map(isRetryable)).toEqual([false, true]);
});

it.each([
  ['Apollo Client', (status: number) => ({ name: 'ServerError', statusCode: status })],
  ['urql and graphql-request', (status: number) => ({ networkError: new Error(), response: { status } })],
])(
  'What a proxy answers in place of the gateway is retryable as an error of %s, what it refuses is not',
  (_, error) => {
    expect([502, 503, 504].map((status) => isRetryable(error(status)))).toEqual([true, true, true]);
    expect(isRetryable(error(403))).toBe(false);
  },
);

it('A WebSocket that refuses a token is UNAUTHENTICATED, as graphql-ws and as Apollo Client tell it', () => {
  const closes = [
    { code: 4401 },
    new Error('Socket closed with event 4403 Token expired'),
    { code: 1006 },
    new Error('Socket closed with event 1013 '),
  ];
  expect(closes.map(errorCodeOf)).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED', undefined, undefined]);
  expect(closes.map(isRetryable)).toEqual([false, false, true, true]);
});

it('What a watch tries again is retryable', async () => {
  const onReconnect = (_: number, cause: unknown) => {
    throw cause;
  };
  const fetch = async () => new Response('', { status: 502 });
  const watch = watchRefreshJob({ url: 'http://x', taxpayerId: 'x', jobId: 'y', token: undefined, fetch, onReconnect });
  expect(isRetryable(await watch.next().catch((cause: unknown) => cause))).toBe(true);
});

it.each([
  ['Firefox', new TypeError('Error in input stream')],
  ['Apollo Client', new Error('premature end of multipart body')],
  ['Bun', { code: 'ECONNREFUSED' }],
  ['Deno', new TypeError('error reading a body from connection')],
  ['Cloudflare Workers', new Error('Network connection lost.')],
  ['graphql-sse', { name: 'NetworkError', message: 'Connection closed while having active streams' }],
])('A lost connection is retryable as an error of %s', (_, error) => {
  expect(isRetryable(error)).toBe(true);
});

it('The longest of several times says when to try again', () => {
  const sooner = { ...problem, extensions: { ...problem.extensions, retryAfterSeconds: 2 } };
  expect(retryAfterSeconds([sooner, problem, sooner])).toBe(7);
});
