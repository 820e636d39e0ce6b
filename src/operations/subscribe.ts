import { createSourceEventStream, execute, type GraphQLSchema } from 'graphql';
import type { Places } from '../admission/Places.js';
import type { Quota } from '../admission/Quota.js';
import type { ErrorCode } from '../errors/errors.js';
import { causesOf } from '../errors/maskError.js';
import type { Trail } from '../process/Trail.js';
import type { Answer } from './answer.js';
import { codesIn, type Exit } from './Exit.js';
import type { Work } from './KnownOperations.js';
import { heldBytesOf, type Operation, refusal } from './Operation.js';
import type { OperationContext, OperationFacts } from './OperationContext.js';
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
  const codes = new Map<ErrorCode, number>();
  const causes = new Set<string>();
  const noted = (answer: Answer, errors: readonly unknown[] = []): Answer => {
    events += 1;
    for (const [code, count] of codesIn(answer)) codes.set(code, (codes.get(code) ?? 0) + count);
    for (const cause of causesOf(errors)) if (causes.size < 3) causes.add(cause);
    return answer;
  };
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
      const answer = noted(exit.answer(operation, result), result.errors);
      quota.noteWork(holder, answeredAt);
      return answer;
    },
    failed: (error) => noted(exit.refusal(refusal(error), facts), [error]),
    onEnd: () => {
      release();
      exit.record(operation, { kind: 'result', status: 200 }, codes, [...causes], events);
    },
  });
}
