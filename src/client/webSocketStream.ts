import type { ErrorCode } from '../errors/errorCodes.js';
import type { StreamRequest } from './eventStream.js';

/** What is needed of a WebSocket: the browser's own, or that of the package `ws`. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

type Message =
  | { readonly type: 'connection_ack' | 'ping' | 'pong' | 'complete' }
  | { readonly type: 'next' | 'error'; readonly payload: unknown };

/**
 * The results of a subscription over a WebSocket of its own (protocol graphql-transport-ws). Ends when the gateway says
 * that it is complete.
 *
 * @throws the errors of a refusal, or an Error when the socket broke off
 */
export async function* webSocketStream(
  request: StreamRequest,
  openWebSocket: (url: string, protocol: string) => WebSocketLike,
): AsyncGenerator<unknown> {
  const socket = openWebSocket(request.url.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const inbox = new Inbox();
  const send = (message: object) => socket.send(JSON.stringify(message));
  const close = () => {
    inbox.end(new Error('The watch was ended'));
    socket.close(1000);
  };
  request.signal.addEventListener('abort', close, { once: true });
  const { token } = request;
  socket.onopen = () => {
    send({ type: 'connection_init', ...(token !== undefined && { payload: { authorization: `Bearer ${token}` } }) });
  };
  let acknowledged = false;
  socket.onmessage = ({ data }: { data: unknown }) => {
    const message = JSON.parse(String(data)) as Message;
    acknowledged ||= message.type === 'connection_ack';
    inbox.put(message);
  };
  socket.onerror = () => {};
  socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
    inbox.end(refusalOf(code, reason, acknowledged));
  };
  try {
    for (;;) {
      const message = await inbox.take();
      switch (message.type) {
        case 'connection_ack':
          send({ id: '1', type: 'subscribe', payload: request.body });
          break;
        case 'ping':
          send({ type: 'pong' });
          break;
        case 'next':
          yield message.payload;
          break;
        case 'error':
          throw message.payload;
        case 'complete':
          return;
      }
    }
  } finally {
    request.signal.removeEventListener('abort', close);
    socket.close(1000);
  }
}

/**
 * A socket that is refused has no body to say why: the close code does. 4403 before the acknowledgement is a refusal
 * (graphql-transport-ws); after it, the gateway says so that the token has expired.
 */
function refusalOf(closeCode: number, reason: string, acknowledged: boolean): unknown {
  const codes: Readonly<Record<number, ErrorCode>> = {
    4401: 'UNAUTHENTICATED',
    4403: acknowledged ? 'UNAUTHENTICATED' : 'FORBIDDEN',
  };
  const code = codes[closeCode];
  return code === undefined
    ? new Error('The socket broke off')
    : { message: reason || 'The gateway refused the connection', extensions: { code } };
}

/** Messages that arrive by events, for a loop that takes them one by one. */
class Inbox {
  readonly #messages: Message[] = [];
  #failure: { readonly error: unknown } | undefined;
  #wake: () => void = () => {};

  put(message: Message): void {
    this.#messages.push(message);
    this.#wake();
  }

  end(error: unknown): void {
    this.#failure ??= { error };
    this.#wake();
  }

  async take(): Promise<Message> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) return message;
      if (this.#failure !== undefined) throw this.#failure.error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
