import { createServer } from 'node:http';
import { errorCodeOf, type WatchOptions, watchRefreshJob } from '../../../packages/client/src/index.js';
import { serve } from '../../support/serve.js';

const job = { taxpayerId: 'x', jobId: 'y' };
const streamOf = async (events: string | ReadableStream) =>
  new Response(events, { headers: { 'content-type': 'text/event-stream' } });
const eventsOf = (answer: object) => `event: next\ndata: ${JSON.stringify(answer)}\n\n`;
const eventOf = (status: string, name?: string) => eventsOf({ data: { refreshJobUpdated: { name, status } } });

/** Where every request is answered with 503. */
let url: string;
beforeEach(async () => {
  const server = createServer((_, response) => response.writeHead(503).end('no JSON'));
  url = `${await serve(server)}/graphql`;
});

describe('A watch', () => {
  const watch = (overrides: Partial<WatchOptions>) => watchRefreshJob({ url, ...job, ...overrides });
  /** Fails a test that would wait for ever. */
  const mustNotReconnect = () => {
    throw new Error('It must not connect again');
  };

  it.each([
    ['not a url'],
    ['ftp://gateway.example/graphql'],
    ['https://me:planted-secret@gateway.example/graphql', 'https://…@gateway.example/graphql'],
  ])('refuses the url "%s" with a TypeError', async (wrong, found = wrong) => {
    await expect(watch({ url: wrong, onReconnect: mustNotReconnect }).next()).rejects.toEqual(
      new TypeError(`url must be like https://gateway.example/graphql, without credentials (found: ${found})`),
    );
  });

  it.each(['Bearer planted-secret', 'planted\nsecret'])(
    'refuses the token %j, which no header can hold',
    async (token) => {
      await expect(watch({ token, onReconnect: mustNotReconnect }).next()).rejects.toEqual(
        new TypeError('token must be ASCII without spaces and line breaks, and so without "Bearer"'),
      );
    },
  );

  it.each([
    [new Error('signed out'), 'signed out'],
    [new TypeError('Failed to fetch'), 'It must not connect again'],
  ])('passes on what token() throws: %s', async (error, thrown) => {
    const updates = watch({ token: () => Promise.reject(error), onReconnect: mustNotReconnect });
    await expect(updates.next()).rejects.toThrow(thrown);
  });

  it('passes on what onReconnected throws', async () => {
    const fetch = () => streamOf(eventOf('PROCESSING'));
    const updates = watch({ fetch, onReconnected: mustNotReconnect });
    await updates.next();
    await expect(updates.next()).rejects.toThrow('It must not connect again');
  });

  it('ends when its signal aborts while token() is pending', async () => {
    const ending = new AbortController();
    const token = () => {
      setImmediate(() => ending.abort());
      return new Promise<string>(() => {});
    };
    expect((await watch({ token, signal: ending.signal }).next()).done).toBe(true);
  }, 10_000);

  it('pauses longer after each failure, and ends without the pause when onReconnect aborts its signal', async () => {
    const ending = new AbortController();
    const { signal } = ending;
    let abortedAt = 0;
    const pauses: number[] = [];
    const onReconnect = (pauseMs: number) => {
      abortedAt = performance.now();
      if (pauses.push(pauseMs) === 2) ending.abort();
    };
    expect((await watch({ signal, onReconnect }).next()).done).toBe(true);
    expect(performance.now() - abortedAt).toBeLessThan(400); // the shortest pause has 500 ms
    expect(pauses[1]).toBeGreaterThanOrEqual(1000); // the longest first pause
  });
});

describe('The event stream of a watch', () => {
  it('tells why it ended, and when the next one works, after which pauses are short again; an error beside data ends none', async () => {
    const ending = new AbortController();
    const errors = (code: string) => ({ errors: [{ extensions: { code } }] });
    const status = eventsOf({
      data: { refreshJobUpdated: { status: 'PROCESSING' } },
      ...errors('UPSTREAM_INVALID_RESPONSE'),
    });
    const bodies = [status + eventsOf(errors('SHUTTING_DOWN')), status];
    const causes: unknown[] = [];
    const pauses: number[] = [];
    const updates = watchRefreshJob({
      url,
      ...job,
      signal: ending.signal,
      fetch: () => streamOf(`${bodies.shift()}event: complete\ndata:\n\n`),
      onReconnected: () => causes.push('works again'),
      onReconnect: (pauseMs, cause) => {
        causes.push(errorCodeOf(cause) ?? cause);
        pauses.push(pauseMs);
        if (bodies.length === 0) ending.abort();
      },
    });
    for await (const { status } of updates) expect(status).toBe('PROCESSING');
    expect(causes).toEqual(['SHUTTING_DOWN', 'works again', undefined]);
    expect(Math.max(...pauses)).toBeLessThan(1000);
  });

  it.each([
    ['U+2028 and U+2029 in a text, which JSON need not escape', 'a\u2028b\u2029data: c', (events: string) => events],
    ['lines that end with CRLF', 'a', (events: string) => events.replaceAll('\n', '\r\n')],
    ['no space after the colon', 'a', (events: string) => events.replaceAll('data: ', 'data:')],
  ])('may have %s', async (_, name, written) => {
    const bytes = new TextEncoder().encode(
      written(`:\n\n${eventOf('PROCESSING', name)}:\n\n${eventOf('COMPLETED', name)}event: complete\ndata: \n\n`),
    );
    const byteByByte = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const updates = watchRefreshJob({
      url,
      ...job,
      fetch: () => streamOf(byteByByte),
      onReconnect: (_, cause) => {
        throw cause;
      },
    });
    const seen: unknown[] = [];
    for await (const update of updates) seen.push(update);
    expect(seen).toEqual([
      { name, status: 'PROCESSING' },
      { name, status: 'COMPLETED' },
    ]);
  });

  it('is asked for at the address that is given, also that of a router', async () => {
    const asked: unknown[] = [];
    const fetch = (address: unknown) => {
      asked.push(address);
      return streamOf(eventOf('COMPLETED'));
    };
    const given = ['https://gateway.example/graphql/stream', 'https://gateway.example/a/?key=b'];
    for (const url of given) {
      for await (const { status } of watchRefreshJob({ url, ...job, fetch })) expect(status).toBe('COMPLETED');
    }
    expect(asked).toEqual(given);
  });
});
