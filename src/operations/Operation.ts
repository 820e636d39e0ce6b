import type { GraphQLRequest } from './GraphQLRequest.js';
import type { Work } from './KnownOperations.js';
import type { OperationContext, OperationFacts } from './OperationContext.js';
import type { OperationType, Transport } from './OperationRecord.js';

/** An operation that was admitted; nothing of it has run. */
export interface Operation {
  readonly facts: OperationFacts;
  readonly transport: Transport;
  /** See {@link operationLabel}. */
  readonly label: string;
  readonly type: OperationType;
  /** The name that the client gave it, as far as it is logged. */
  readonly name?: string | undefined;
  readonly context: OperationContext;
  readonly request: GraphQLRequest;
  readonly work: Work | Refused;
}

/** Nothing will run. `mistake`, `refusal`: see {@link Answer}. */
export interface Refused {
  readonly way?: undefined;
  readonly kind: 'mistake' | 'refusal';
  readonly errors: readonly unknown[];
}

export function refusal(error: unknown): Refused {
  return { kind: 'refusal', errors: [error] };
}

/** Bytes of memory per character of a parsed request. */
const bytesPerCharacter = 16;
/** Requests of at most so many characters are not counted in the places: their number bounds the memory they take. */
const smallRequest = 1024;

/** Bytes of memory that a request takes while its answer is awaited, or its stream is open. */
export function heldBytesOf({ request: { size = 0 } }: Operation): number {
  return size > smallRequest ? bytesPerCharacter * size : 0;
}
