import type { IncomingMessage } from 'node:http';
import type { GraphQLEndpointOptions, HttpTracing } from '../http/GraphQLEndpoint.js';
import type { OpenStreams } from './OpenStreams.js';

/** Dependencies and limits of the live transports. */
export interface LiveOptions extends GraphQLEndpointOptions {
  readonly streams: OpenStreams;
  /** Browser origins that may open a stream besides our own. */
  readonly allowedOrigins: readonly string[];
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
  /** Heartbeat interval of an open stream in milliseconds, by default 12 s: proxies close idle streams. */
  readonly keepAliveMs?: number | undefined;
  readonly tracing?: LiveTracing | undefined;
}

/** Spans of operations over plain HTTP and of sockets. */
export interface LiveTracing extends HttpTracing {
  readonly socket: (
    request: IncomingMessage,
    route: string,
    status?: number,
  ) => { run<T>(operation: () => Promise<T>): Promise<T>; end(): void };
}
