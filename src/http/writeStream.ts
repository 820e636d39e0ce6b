import { maskError } from '../errors/maskError.js';
import type { Answer } from '../operations/Operation.js';
import type { ResultStream } from '../operations/ResultStream.js';
import { atTime } from '../process/pause.js';
import type { StreamTransport } from './accept.js';
import { headersOf } from './answering.js';
import { type Edge, shuttingDown } from './edge.js';
import type { HttpFacts } from './facts.js';

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

/** Writes the answers of a subscription, or one answer. Resolves when the stream has ended. */
export async function writeStream(
  result: Answer | ResultStream,
  form: StreamTransport,
  { response, requestId, caller }: HttpFacts,
  { unread, draining, metrics, config }: Edge,
): Promise<void> {
  const { contentType, opening, answer, heartbeat, interruption, completion } = streamFormats[form];
  const { socket } = response.req;
  /** Resolves when the system has taken all `bytes`, so that a slow reader builds no queue, or when the stream is over. */
  const write = async (bytes: Buffer): Promise<void> => {
    if (socket.destroyed) return;
    const taken = new Promise<void>((resolve) => {
      socket.once('close', resolve); // a pipelined response that has no socket yet is not told
      response.write(bytes, () => {
        socket.off('close', resolve);
        resolve();
      });
    });
    const release = unread.hold(socket, caller?.holder, response.writableLength);
    await taken;
    release?.();
  };
  const send = ({ text, release }: Answer): Promise<void> => {
    release?.();
    return write(Buffer.from(answer(text)));
  };

  response.writeHead(200, [...headersOf(requestId), 'content-type', contentType, 'x-accel-buffering', 'no']);
  response.write(opening); // not timed: what follows at once is taken together with it, and may be long
  if (result.kind !== 'stream') {
    void send(result); // not awaited: that would keep the text in memory beside its bytes
    response.end(completion);
    return;
  }
  metrics.openStreams.add(form, 1);
  const beating = setInterval(() => {
    if (response.writableLength === 0) void write(Buffer.from(heartbeat));
  }, config.keepAliveMs);
  // Also while the client reads nothing: the source must not run on for an expired token.
  const forgetExpiry = atTime(result.operation.facts.caller.expiresAt, () => result.endSource());
  try {
    await result.sendTo(send);
  } finally {
    clearInterval(beating);
    metrics.openStreams.add(form, -1);
    forgetExpiry();
  }
  // The drain ends the source before the subscription is complete.
  response.end(draining.aborted ? interruption(requestId) : completion);
}
