import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { atEnd } from './atEnd.js';

interface RawMessage {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

interface RawSocketOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocol?: string;
  readonly path?: string;
}

/**
 * A WebSocket on which a test writes and reads the messages of `graphql-transport-ws` itself. Over TLS, any certificate is
 * accepted.
 */
export function rawSocket(origin: string, options: RawSocketOptions = {}) {
  const { headers = {}, protocol = 'graphql-transport-ws', path = '/graphql' } = options;
  const socket = new WebSocket(`${origin.replace('http', 'ws')}${path}`, protocol, {
    headers,
    rejectUnauthorized: false,
  });
  const received: RawMessage[] = [];
  const waiting: { readonly want: (message: RawMessage) => boolean; readonly found: (message: RawMessage) => void }[] =
    [];
  const closed = once(socket, 'close').then(([code, reason]) => ({
    code: code as number,
    reason: String(reason as Buffer),
  }));
  const opened = once(socket, 'open');
  for (const promise of [closed, opened]) promise.catch(() => {}); // a test that awaits one still gets the error
  socket.on('error', () => {});
  atEnd(() => socket.terminate());
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as RawMessage;
    received.push(message);
    for (const waiter of waiting.filter(({ want }) => want(message))) {
      waiting.splice(waiting.indexOf(waiter), 1);
      waiter.found(message);
    }
  });
  return {
    socket,
    received,
    opened,
    /** The close code and reason from the server. */
    closed,
    /** The answer to an upgrade that is refused. To be called before that comes. */
    refused: () =>
      new Promise<IncomingMessage>((resolve) => {
        socket.once('unexpected-response', (_, response) => resolve(response));
      }),
    send: (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    /** Asks for an operation of any kind. */
    subscribe(payload: object, id = '1') {
      this.send({ type: 'subscribe', id, payload });
    },
    /** The first message, already received or to come, of this type and id, or for which `wanted` is true. */
    async message(wanted: string | ((message: RawMessage) => boolean), ofId?: string): Promise<RawMessage> {
      const want =
        typeof wanted === 'string' ? ({ type, id }: RawMessage) => type === wanted && (ofId ?? id) === id : wanted;
      const before = received.find(want);
      if (before) return before;
      return new Promise((found) => {
        waiting.push({ want, found });
      });
    },
    /** The first message about the operation of this id. */
    answerTo(id: string) {
      return this.message((message) => message.id === id);
    },
    /** The TCP connection, once it is there. */
    get connection(): Socket {
      return (socket as unknown as { readonly _socket: Socket })._socket;
    },
    /** Sends `connection_init` as soon as the connection is open. */
    async sendInit(parameters?: unknown) {
      await opened;
      this.send({ type: 'connection_init', payload: parameters });
    },
    /** The same; resolves on the acknowledgement. */
    async init(parameters?: unknown) {
      await this.sendInit(parameters);
      await this.message('connection_ack');
    },
    end: () => socket.terminate(),
  };
}

export type RawSocket = ReturnType<typeof rawSocket>;

/** A socket whose connection is initialised with these parameters. */
export async function initSocket({ origin }: { readonly origin: string }, parameters?: unknown): Promise<RawSocket> {
  const socket = rawSocket(origin);
  await socket.init(parameters);
  return socket;
}
