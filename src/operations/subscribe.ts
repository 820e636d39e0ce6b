import { createSourceEventStream, execute, type GraphQLSchema } from 'graphql';
import type { Places } from '../admission/Places.js';
import type { Quota } from '../admission/Quota.js';
import type { Trail } from '../process/Trail.js';
import type { Exit } from './Exit.js';
import type { Work } from './KnownOperations.js';
import {
  type Answer,
  heldBytesOf,
  type Operation,
  type OperationContext,
  type OperationFacts,
  refusal,
} from './Operation.js';
import { ResultStream } from './ResultStream.js';

/** Estimated milliseconds that a field takes after a wait: that time cannot be measured, because others run meanwhile. */
export const laterFieldMs = 0.002;

export interface SubscribeOptions {
  readonly schema: GraphQLSchema;
  readonly contextFor: (facts: OperationFacts, trail?: Trail) => OperationContext;
  readonly quota: Quota;
  readonly places: Places;
}

/**
 * Begins a subscription: a stream of answers, or one answer when it cannot begin. The work of an event is its caller's, like
 * that of an operation. @throws GatewayError RATE_LIMITED when there is no room for it
 */
export async function subscribe(
  operation: Operation,
  { fields, document, values: variableValues }: Work,
  exit: Exit,
  { schema, contextFor, quota, places }: SubscribeOptions,
): Promise<Answer | ResultStream> {
  const { facts, context, request } = operation;
  const { holder, trail } = context;
  const args = { schema, document, operationName: request.operationName, variableValues };
  const release = places.take('bytes', holder, heldBytesOf(operation));

  const beganAt = performance.now();
  const subscribing = createSourceEventStream({ ...args, contextValue: context });
  quota.noteWork(holder, beganAt);
  const source = await subscribing.catch((error) => {
    release();
    throw error;
  });
  if (!(Symbol.asyncIterator in source)) {
    release();
    return exit.leave(operation, source);
  }
  let events = 0;
  return new ResultStream(source[Symbol.asyncIterator](), {
    expiresAt: facts.caller.expiresAt,
    execute: async (event) => {
      await quota.turnOf(holder);
      const executedAt = performance.now();
      // Each event gets a context of its own, so that it does not see what an earlier event has read.
      const executing = execute({ ...args, contextValue: contextFor(facts, trail), rootValue: event });
      quota.noteWork(holder, executedAt, executing instanceof Promise ? fields * laterFieldMs : 0);
      const result = await executing;
      const answeredAt = performance.now();
      events += 1;
      const answer = exit.answer(operation, result);
      quota.noteWork(holder, answeredAt);
      return answer;
    },
    failed: (error) => {
      events += 1;
      return exit.refusal(operation, refusal(error));
    },
    onEnd: () => {
      release();
      operation.events = events;
      exit.end(operation, { kind: 'result', status: 200 });
    },
  });
}
