import type { ExecutionResult } from 'graphql';
import type { LiveOperations, ReadyOperation, RefusedOperation } from '../operations/LiveOperations.js';
import { atTime } from './atTime.js';
import type { HttpStream } from './HttpStream.js';
import { ResultStream } from './ResultStream.js';

export interface PipedOperation {
  readonly operations: LiveOperations;
  readonly operation: ReadyOperation | RefusedOperation;
  readonly stream: HttpStream;
}

/** How long after its caller's token a stream may take to say that it has expired, in milliseconds. */
const lastWordsMs = 1000;

/** Writes the results of an operation and its completion; a refusal is a result as well. Resolves when all is written. */
export async function pipeResults({ operations, operation, stream }: PipedOperation): Promise<void> {
  const left = stream.closed;
  const isSubscription = operation.kind === 'ready' && operation.type === 'subscription';
  const letGo = isSubscription ? endAfterToken(operation, stream) : stream.hold();
  try {
    const result: ExecutionResult | ResultStream =
      operation.kind === 'refused' ? { errors: operation.errors } : await operations.perform(operation);
    const write = (each: ExecutionResult) => stream.result(each);
    await (result instanceof ResultStream ? pipeStream(result, write, left) : write(result));
    if (!left.aborted) await stream.complete();
  } finally {
    letGo();
  }
}

/** However little of it was read: a subscription ends with its caller's token. */
function endAfterToken({ facts }: ReadyOperation, stream: HttpStream): () => void {
  return atTime(facts.caller.expiresAt + lastWordsMs, () => stream.destroy());
}

/** Writes each result when the one before has been taken; resolves at the end, or when `left` aborts. */
export async function pipeStream(
  results: ResultStream,
  write: (result: ExecutionResult) => Promise<void>,
  left: AbortSignal,
): Promise<void> {
  const leave = () => void results.return();
  left.addEventListener('abort', leave, { once: true });
  if (left.aborted) leave();
  for await (const each of results) await write(each);
  left.removeEventListener('abort', leave);
}
