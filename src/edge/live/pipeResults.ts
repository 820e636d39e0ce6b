import type { ExecutionResult } from 'graphql';
import type { HttpStream } from './HttpStream.js';
import type { LiveOperations, ReadyOperation, RefusedOperation } from './LiveOperations.js';
import { ResultStream } from './ResultStream.js';

export interface PipedOperation {
  readonly operations: LiveOperations;
  readonly operation: ReadyOperation | RefusedOperation;
  readonly stream: HttpStream;
  /** Of an operation that shares the stream with others. */
  readonly id?: string;
  /** Aborts when nobody wants the results any more. */
  readonly left: AbortSignal;
}

/** Writes the results of an operation and its completion; a refusal is a result as well. Resolves when all is written. */
export async function pipeResults({ operations, operation, stream, id, left }: PipedOperation): Promise<void> {
  const isStream = operation.kind === 'ready' && operation.type === 'subscription';
  const letGo = isStream ? () => {} : stream.hold();
  try {
    const result: ExecutionResult | ResultStream =
      operation.kind === 'refused' ? { errors: operation.errors } : await operations.perform(operation);
    await (result instanceof ResultStream ? pipeStream(result, { stream, id, left }) : stream.result(result, id));
    if (!left.aborted) await stream.complete(id);
  } finally {
    letGo();
  }
}

async function pipeStream(
  results: ResultStream,
  { stream, id, left }: Pick<PipedOperation, 'stream' | 'left'> & { readonly id: string | undefined },
): Promise<void> {
  const leave = () => void results.return();
  left.addEventListener('abort', leave, { once: true });
  if (left.aborted) leave();
  for await (const each of results) await stream.result(each, id);
  left.removeEventListener('abort', leave);
}
