import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { watchJob } from './liveJob.js';

/** A message that the gateway posts to a router's callback URL. */
export interface Posted {
  readonly action: string;
  readonly id: string;
  readonly verifier: string;
  readonly payload?: unknown;
  readonly errors?: unknown;
}

/** The status of a router that accepts every message. */
export const acceptAll = ({ action }: Posted) => (action === 'check' ? 204 : 200);

/** A router's callback URL. Redirects lead to another path of the same server, which accepts everything. */
export async function startCallbackRouter() {
  const posted: Posted[] = [];
  let mayAnswer: Promise<void> | undefined;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const post = JSON.parse(body || '{}') as Posted;
    posted.push(post);
    await mayAnswer;
    const status = request.url === '/redirected' ? 204 : router.statusOf(post);
    response.writeHead(status, { location: '/redirected', 'subscription-protocol': 'callback/1.0' }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const secret = 'a-secret-of-the-router';
  const router = {
    origin,
    /** The settings of a gateway that posts to this router. */
    env: { FEDERATION_SHARED_SECRET: secret, CALLBACK_ORIGINS: origin },
    /** Every message received, in order. */
    posted,
    statusOf: acceptAll as (post: Posted) => number,
    actions: () => posted.map(({ action }) => action),
    /** Answers nothing until the returned function is called. */
    hold(): () => void {
      let release = () => {};
      mayAnswer = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    /** Subscribes to a job at a gateway, with results posted to this router. */
    subscribe(gateway: { readonly origin: string }, variables: object, { headers = {}, ...subscription }: Asked = {}) {
      const target = {
        callbackUrl: `${origin}/callback/1`,
        subscriptionId: '1',
        verifier: 'v',
        heartbeatIntervalMs: 0,
      };
      return fetch(`${gateway.origin}/graphql`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json;callbackSpec=1.0',
          'x-gateway-router-secret': secret,
          ...headers,
        },
        body: JSON.stringify({
          query: watchJob,
          variables,
          extensions: { subscription: { ...target, ...subscription } },
        }),
      });
    },
    stop(): void {
      server.closeAllConnections();
      server.close();
    },
  };
  return router;
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  /** Other members are those of `extensions.subscription`. */
  readonly [member: string]: unknown;
}

export type CallbackRouter = Awaited<ReturnType<typeof startCallbackRouter>>;
