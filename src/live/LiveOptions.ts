import type { GraphQLHandlerOptions } from '../http/GraphQLHandler.js';

/** Dependencies and limits of sockets. */
export interface LiveOptions extends GraphQLHandlerOptions {
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
}
