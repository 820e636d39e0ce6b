import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from 'cors';
import { GatewayError } from '../errors/errors.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { isLoopback, urlOf } from '../process/hosts.js';
import type { Surroundings } from '../services.js';

/** Most refused origins that are logged: anybody can send any number of them. */
const maxLogged = 20;

/** Which pages may ask. */
export class Origins {
  readonly #logged = new Set<string>();
  readonly #cors = cors({
    origin: (origin, decide) => decide(null, this.#allows(origin ?? '')),
    methods: ['GET', 'POST'],
    exposedHeaders: ['x-request-id', 'retry-after'],
    maxAge: 600,
  });

  constructor(private readonly surroundings: Surroundings) {}

  /** Answers preflights, and marks the answers that pages of allowed origins may read. Returns whether it has answered. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.headers.origin === undefined) return false; // no browser of another origin is asking
    this.#cors(request, response, () => {});
    if (this.#mayAsk(request)) return response.writableEnded;
    this.#logRefused(request.headers.origin);
    if (request.method !== 'OPTIONS') return false;
    response.writeHead(403).end(); // answered here: a preflight has no token, and must not count as a caller without one
    return true;
  }

  /** Any page can open a WebSocket or an EventSource to any host. @throws GatewayError unless the page is ours or allowed */
  refuseForeignPage(request: IncomingMessage): void {
    if (this.#mayAsk(request)) return;
    this.#logRefused(request.headers.origin);
    throw new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }

  /** A page can also GET without telling its origin, as for an image: `Sec-Fetch-Mode` tells. @throws GatewayError */
  refuseForeignGet(request: IncomingMessage): void {
    this.refuseForeignPage(request);
    const mode = request.headers['sec-fetch-mode'] ?? 'cors';
    if (mode === 'cors' || mode === 'same-origin') return;
    throw badRequest('A GET from a page must be made by a script (fetch, EventSource)', 400);
  }

  #mayAsk({ headers: { origin, host } }: IncomingMessage): boolean {
    if (origin === undefined || this.#allows(origin)) return true;
    const page = urlOf(origin);
    return page !== undefined && urlOf(`${page.protocol}//${host}`)?.host === page.host; // our own page
  }

  #allows(origin: string): boolean {
    const { CORS_ORIGINS, AUTH_MODE } = this.surroundings.config;
    if (CORS_ORIGINS.includes(origin)) return true;
    // In developer mode, every page of this machine may ask.
    return AUTH_MODE === 'developer' && isLoopback(urlOf(origin)?.hostname ?? '');
  }

  #logRefused(origin = ''): void {
    if (this.#logged.size >= maxLogged || this.#logged.has(origin)) return;
    this.#logged.add(origin);
    this.surroundings.log.warn(
      // In plain characters: JSON leaves control characters of Latin-1 as they are, and a terminal may obey them.
      { origin: origin.replace(/[^\x21-\x7e]/g, '').slice(0, 200) },
      'a page of this origin is refused: to allow it, set CORS_ORIGINS',
    );
  }
}
