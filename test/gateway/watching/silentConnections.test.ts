import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { jest } from '@jest/globals';
import { isRetryable, type WatchOptions, watchRefreshJob } from '../../../packages/client/src/index.js';
import { serve } from '../../support/serve.js';

let connections: Socket[];
let url: string;
let opened: number;
/** What the server does on the first connection before it falls silent; those after it bring the end of the job. */
let first: string;
/** Sends bytes on the present event stream. */
let write: (text: string) => void;
/** Emits `connection` for each request of the client, and `chunk` for each piece that it has read. */
let events: EventEmitter;

beforeEach(async () => {
  opened = 0;
  connections = [];
  events = new EventEmitter();
  const server = createServer(serveEvents);
  server.on('connection', (socket) => connections.push(socket));
  url = `${await serve(server)}/graphql`;
  jest.useFakeTimers({
    doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setInterval'],
  });
});

afterEach(() => {
  jest.useRealTimers();
});

function serveEvents(_: IncomingMessage, response: ServerResponse) {
  opened += 1;
  events.emit('connection');
  if (opened === 1 && first === 'accepts') return;
  write = (text) => response.write(text);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const status = opened === 1 ? 'PROCESSING' : 'COMPLETED';
  write(`event: next\ndata: ${JSON.stringify({ data: { refreshJobUpdated: { status } } })}\n\n`);
}

function watch(overrides: Partial<WatchOptions> = {}) {
  const tappedFetch: typeof fetch = async (...request) => {
    const response = await fetch(...request).catch(() => Promise.reject(new DOMException('Fetch is aborted'))); // as Safari
    const transform = (chunk: unknown, controller: TransformStreamDefaultController) => {
      controller.enqueue(chunk);
      setImmediate(() => events.emit('chunk'));
    };
    return new Response(response.body?.pipeThrough(new TransformStream({ transform })), response);
  };
  return watchRefreshJob({ url, taxpayerId: 'x', jobId: 'y', fetch: tappedFetch, ...overrides });
}

it.each(['accepts', 'updates'])(
  'A watch, where the server %s and falls silent, connects again, and says why',
  async (silence) => {
    first = silence;
    const causes: unknown[] = [];
    const onReconnect = (_: number, cause: unknown) => causes.push(cause);
    const updates = watch({ onReconnect });
    const connected = once(events, 'connection');
    let next = updates.next();
    await connected;
    if (silence === 'updates') {
      expect((await next).value).toMatchObject({ status: 'PROCESSING' });
      next = updates.next();
    }
    for (let seconds = 0; causes.length === 0 && seconds < 60; seconds += 1) await jest.advanceTimersByTimeAsync(1000);
    expect(causes).toEqual([new Error('The network was silent for 40 seconds')]);
    await jest.advanceTimersByTimeAsync(1000); // the pause
    expect((await next).value).toMatchObject({ status: 'COMPLETED' });
    expect(causes).toHaveLength(1);
    expect(isRetryable(causes[0])).toBe(true);
    expect(opened).toBe(2);
  },
);

it('A watch stays connected while the gateway only shows that it is alive', async () => {
  first = 'nothing but signs of life';
  const updates = watch();
  expect((await updates.next()).value).toMatchObject({ status: 'PROCESSING' });
  const ended = updates.next();
  for (let seconds = 0; seconds < 120; seconds += 12) {
    const chunk = once(events, 'chunk');
    await jest.advanceTimersByTimeAsync(12_000);
    write(':\n\n');
    await chunk;
  }
  expect(opened).toBe(1);
  for (const socket of connections) socket.destroy();
  while (opened === 1) await jest.advanceTimersByTimeAsync(100);
  expect((await ended).value).toMatchObject({ status: 'COMPLETED' });
  const closed = once(connections.pop() as Socket, 'close');
  expect((await updates.next()).done).toBe(true);
  await closed;
});
