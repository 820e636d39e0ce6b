import type { IncomingMessage } from 'node:http';
import type { GraphQLHandlerOptions, HttpTracing } from '../http/GraphQLHandler.js';

/** Dependencies and limits of sockets. */
export interface LiveOptions extends GraphQLHandlerOptions {
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
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
