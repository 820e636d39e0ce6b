import cors from 'cors';
import type { Config } from '../config/config.js';
import type { MeetPeer } from '../network/peer.js';
import type { HttpServerOptions } from './HttpServer.js';

type Before = HttpServerOptions['before'];

/** What happens before every route: it becomes known who asks, and whether a page of another origin may. */
export function beforeRoutes(config: Config, meetPeer: MeetPeer): Before {
  const isAnsweredByOrigin = crossOrigin(config);
  return (request, response) => {
    meetPeer(request);
    return isAnsweredByOrigin(request, response);
  };
}

/** Answers preflights, and marks the answers that browsers of an allowed origin may read. */
function crossOrigin({ corsOrigins }: Config): Before {
  const exposedHeaders = ['x-request-id', 'retry-after', 'ratelimit', 'ratelimit-policy'];
  const allowOrigin = cors({ origin: [...corsOrigins], methods: ['GET', 'POST'], exposedHeaders, maxAge: 600 });
  return (request, response) => {
    if (request.headers.origin === undefined) return false; // no browser of another origin is asking
    let answered = true;
    allowOrigin(request, response, () => {
      answered = false;
    });
    return answered;
  };
}
