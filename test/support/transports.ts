import { post, type TestGateway } from './gateway.js';
import { initSocket } from './rawSocket.js';

/** Sends a request with `body` as its JSON text; returns the answer as text. */
type SendBody = (gateway: Pick<TestGateway, 'origin'>, body: string) => Promise<string>;

/** The same request over every transport that a client has without a router. */
export const transports = {
  HTTP: (gateway, body) => textOf(gateway, body, 'application/json', '/graphql'),
  WebSocket: async (gateway, body) => {
    const socket = await initSocket(gateway);
    socket.send(`{"type":"subscribe","id":"1","payload":${body}}`);
    const { payload } = await socket.answerTo('1');
    socket.end();
    return JSON.stringify(payload);
  },
  'server-sent events': (gateway, body) => textOf(gateway, body, 'text/event-stream', '/graphql/stream'),
  multipart: (gateway, body) => textOf(gateway, body, 'multipart/mixed;subscriptionSpec=1.0', '/graphql'),
} satisfies Readonly<Record<string, SendBody>>;

async function textOf({ origin }: Pick<TestGateway, 'origin'>, body: string, accept: string, path: string) {
  const response = await post(`${origin}${path}`, body, { accept });
  return response.text();
}
