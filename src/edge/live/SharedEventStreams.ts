import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.js';
import { readGraphQLRequest } from '../graphqlRequest.js';
import type { Identity } from '../identify.js';
import { atTime } from './atTime.js';
import { eventStreamFormat, HttpStream } from './HttpStream.js';
import { admitStream, type LiveEndpointOptions, refuseWhenFull } from './liveRequest.js';
import { pipeResults } from './pipeResults.js';

/** How long a reserved stream waits to be opened, in milliseconds. */
const reservationMs = 30_000;

interface Reservation {
  readonly token: string;
  readonly identity: Identity;
  /** What ends each operation, by the id its caller gave it. */
  readonly operations: Map<string, AbortController>;
  readonly free: () => void;
  /** It has been opened: an open stream takes a place of its own. */
  readonly leavePlace: () => void;
  stream: HttpStream | undefined;
}

/**
 * The "single connection mode" of `graphql-sse`, for browsers that allow few connections: PUT reserves a stream, GET opens
 * it, each POST adds an operation and DELETE ends one. The token of the reservation is its caller's credential for it.
 */
export class SharedEventStreams {
  readonly #options: LiveEndpointOptions;
  readonly #reserved = new Map<string, Reservation>();

  constructor(options: LiveEndpointOptions) {
    this.#options = options;
  }

  /** @throws GatewayError with the HTTP status that fits */
  async handle(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    switch (request.method) {
      case 'PUT':
        return this.#reserve(request, response);
      case 'GET':
        return this.#open(await this.#find(request), response);
      case 'POST':
        return this.#start(await this.#find(request), request, response, requestId);
      case 'DELETE':
        return this.#leave(await this.#find(request), request, response);
      default: {
        await admitStream(request, this.#options);
        const options = { httpStatus: 405, allow: 'GET, POST, PUT, DELETE' };
        throw new GatewayError('BAD_USER_INPUT', 'The method must be GET, POST, PUT or DELETE', options);
      }
    }
  }

  async #reserve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const identity = await admitStream(request, this.#options);
    const token = randomUUID();
    const unopened = setTimeout(() => reservation.free(), reservationMs);
    const forgetExpiry = atTime(identity.caller.expiresAt, () => {
      // Each operation is writing why it ends; the stream ends after the last of them.
      setImmediate(() => reservation.stream?.end());
      if (reservation.stream === undefined) reservation.free();
    });
    // A reservation takes a place like an open stream, so that nobody can make any number of them.
    const leavePlace = this.#options.streams.add('sse', { shutDown: () => reservation.free(), destroy: () => {} });
    const reservation: Reservation = {
      token,
      identity,
      operations: new Map(),
      leavePlace: () => {
        clearTimeout(unopened);
        leavePlace();
      },
      stream: undefined,
      free: () => {
        clearTimeout(unopened);
        forgetExpiry();
        leavePlace();
        this.#reserved.delete(token);
        for (const operation of reservation.operations.values()) operation.abort();
      },
    };
    this.#reserved.set(token, reservation);
    response.writeHead(201, { 'content-type': 'text/plain; charset=utf-8' }).end(token);
  }

  /** The reservation that the request's token names. Another caller's is as good as none. */
  async #find(request: IncomingMessage): Promise<Reservation> {
    const reservation = this.#reserved.get(streamTokenOf(request) ?? '');
    if (request.headers.authorization !== undefined || reservation === undefined) {
      const { caller } = await admitStream(request, this.#options);
      if (reservation?.identity.caller.key !== caller.key) throw refusal('Stream not found', 404);
    }
    if (reservation.identity.caller.expiresAt <= Date.now()) throw refusal('Stream not found', 404);
    return reservation;
  }

  #open(reservation: Reservation, response: ServerResponse): void {
    if (reservation.stream !== undefined) throw refusal('Stream already open', 409);
    const { streams, keepAliveMs } = this.#options;
    if (streams.draining) refuseWhenFull(streams);
    const stream = new HttpStream({ response, format: eventStreamFormat, transport: 'sse', streams, keepAliveMs });
    reservation.stream = stream;
    reservation.leavePlace();
    stream.closed.addEventListener('abort', () => reservation.free(), { once: true });
  }

  async #start(
    reservation: Reservation,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
  ): Promise<void> {
    const { operations, requestLimits, maxOperations } = this.#options;
    const { method: _, ...parameters } = await readGraphQLRequest(request, requestLimits);
    const { stream } = reservation;
    if (stream === undefined) throw refusal('Open the stream first', 409);
    const id = parameters.extensions?.['operationId'];
    if (typeof id !== 'string' || id === '') throw refusal('extensions.operationId must be a string', 400);
    if (reservation.operations.has(id)) throw refusal('An operation with this id is under way', 409);
    if (reservation.operations.size >= maxOperations) {
      const message = `At most ${maxOperations} operations at once on one stream (MAX_SUBSCRIPTIONS)`;
      throw new GatewayError('RATE_LIMITED', message, { httpStatus: 429 });
    }
    const left = new AbortController();
    reservation.operations.set(id, left);
    const facts = { ...reservation.identity, requestId, signal: left.signal };
    const operation = await operations.prepare(parameters, facts, 'sse');
    response.writeHead(202).end();
    await pipeResults({ operations, operation, stream, id, left: left.signal });
    reservation.operations.delete(id);
  }

  #leave(reservation: Reservation, request: IncomingMessage, response: ServerResponse): void {
    const id = searchOf(request).get('operationId');
    if (!id) throw refusal('operationId is missing', 400);
    reservation.operations.get(id)?.abort();
    reservation.operations.delete(id);
    response.writeHead(200).end();
  }
}

/** The token of a shared stream, where the protocol puts it: a header, or the address for an EventSource. */
export function streamTokenOf(request: IncomingMessage): string | undefined {
  const header = request.headers['x-graphql-event-stream-token'];
  return typeof header === 'string' ? header : (searchOf(request).get('token') ?? undefined);
}

function searchOf({ url = '' }: IncomingMessage): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start === -1 ? '' : url.slice(start));
}

function refusal(message: string, httpStatus: number): GatewayError {
  return new GatewayError('BAD_USER_INPUT', message, { httpStatus });
}
