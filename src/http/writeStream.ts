import type { ServerResponse } from 'node:http';
import { maskError } from '../errors/maskError.js';
import type { Answer } from '../operations/Operation.js';
import type { ResultStream } from '../operations/ResultStream.js';
import { atTime } from '../process/pause.js';
import type { StreamTransport } from './accept.js';
import { type Edge, shuttingDown } from './edge.js';

const interrupted = (requestId: string) =>
  JSON.stringify({ payload: null, errors: [maskError(shuttingDown, { requestId, openSchema: false })] });

/** How answers are written into a response that stays open. */
const streamFormats = {
  /** `graphql-sse`, in its distinct connections mode. */
  sse: {
    contentType: 'text/event-stream; charset=utf-8',
    opening: ':\n\n', // some browsers wait for a first byte
    heartbeat: ':\n\n',
    /** Written when the process drains, instead of `completion`: the subscription has not ended. */
    interruption: () => ': shutting down\n\n',
    /** Wraps the JSON of an answer. */
    answer: (json: string) => `event: next\ndata: ${json}\n\n`,
    completion: 'event: complete\ndata: \n\n',
  },
  /** Subscriptions of Apollo Client and routers. They read a part up to the next boundary, so parts end with one. */
  multipart: {
    contentType: 'multipart/mixed;boundary="graphql";subscriptionSpec="1.0"',
    opening: '\r\n--graphql',
    heartbeat: part('{}'),
    interruption: (requestId: string) => `${part(interrupted(requestId))}--\r\n`,
    answer: (json: string) => part(`{"payload":${json}}`),
    completion: '--\r\n',
  },
};

function part(json: string): string {
  return `\r\ncontent-type: application/json\r\n\r\n${json}\r\n--graphql`;
}

/** Writes the answers of a subscription, after the usual `headers`. Resolves when the stream has ended. */
export async function writeStream(
  result: ResultStream,
  response: ServerResponse,
  headers: readonly string[],
  { unread, draining, metrics, config }: Edge,
): Promise<void> {
  const { transport, context, facts } = result.operation;
  const form = transport as StreamTransport;
  const { contentType, opening, answer, heartbeat, interruption, completion } = streamFormats[form];
  /** Resolves when the system has taken all `bytes`, so that a slow reader builds no queue, or when the stream is over. */
  const write = async (bytes: Buffer): Promise<void> => {
    if (response.destroyed) return;
    const taken = new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.write(bytes, () => {
        response.off('close', resolve);
        resolve();
      });
    });
    const release = unread.hold(response.req.socket, context.holder, response.writableLength);
    await taken;
    release?.();
  };

  metrics.openStreams.add(form, 1);
  const beating = setInterval(() => {
    if (response.writableLength === 0) void write(Buffer.from(heartbeat));
  }, config.keepAliveMs);
  // Also while the client reads nothing: the source must not run on for an expired token.
  const forgetExpiry = atTime(facts.caller.expiresAt, () => result.endSource());
  response.writeHead(200, [...headers, 'content-type', contentType, 'x-accel-buffering', 'no']);
  void write(Buffer.from(opening));
  try {
    await result.sendTo(({ text }) => write(Buffer.from(answer(text))));
  } finally {
    clearInterval(beating);
    metrics.openStreams.add(form, -1);
    forgetExpiry();
  }
  // The drain ends the source before the subscription is complete.
  response.end(draining.aborted ? interruption(facts.requestId) : completion);
}

/** Writes one answer in the form of a stream. */
export function writeAsStream(
  response: ServerResponse,
  { text }: Answer,
  form: StreamTransport,
  headers: readonly string[],
): void {
  const { contentType, opening, answer, completion } = streamFormats[form];
  response
    .writeHead(200, [...headers, 'content-type', contentType])
    .end(Buffer.from(opening + answer(text) + completion));
}
