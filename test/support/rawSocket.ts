import { once } from 'node:events';
import { WebSocket } from 'ws';

export interface RawMessage {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

export interface RawSocketOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocol?: string;
  readonly path?: string;
}

/**
 * A WebSocket that speaks `graphql-transport-ws` by hand: what it sends and gets is in the test's own words. Over TLS, any
 * certificate will do.
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
  for (const promise of [closed, opened]) promise.catch(() => {}); // whoever awaits one sees why
  socket.on('error', () => {});
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
    /** How the server closed it. */
    closed,
    send: (message: unknown) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    /** The first message, so far or to come, that is the one meant. */
    message: (want: (message: RawMessage) => boolean) => {
      const before = received.find(want);
      return before
        ? Promise.resolve(before)
        : new Promise<RawMessage>((found) => {
            waiting.push({ want, found });
          });
    },
    /** Opens and says who it is; resolves when acknowledged. */
    async init(parameters?: unknown) {
      await opened;
      this.send({ type: 'connection_init', ...(parameters !== undefined && { payload: parameters }) });
      await this.message(({ type }) => type === 'connection_ack');
    },
    end: () => socket.terminate(),
  };
}

export type RawSocket = ReturnType<typeof rawSocket>;
