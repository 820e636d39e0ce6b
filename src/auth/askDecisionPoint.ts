import type { RequestInit } from 'node-fetch';
import * as z from 'zod';
import type { TaxpayerScope } from './caller.js';
import { type ReadFault, readJson } from './readJson.js';

/** The question: may the subject do this with this taxpayer? */
export interface Question {
  readonly action: TaxpayerScope;
  readonly taxpayer: string;
}

/** Where the decision point is, and how to authenticate to it. */
export interface DecisionAddress {
  readonly url: string;
  readonly authorization?: string;
  /** Default: Node's own. */
  readonly agent?: RequestInit['agent'];
}

/** Who asks, and for which operation. */
export interface Asker {
  readonly subject: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** As for metrics: a root field as the schema spells it. */
  readonly operation: string;
  readonly requestId: string;
  /** Takes a place for a call, and returns how to give it back. @throws GatewayError RATE_LIMITED when none is free */
  readonly takePlace?: () => () => void;
}

export type DecisionEndpoint = 'evaluation' | 'evaluations';

/** Why there is no decision; `cause` says it in a few words. */
export interface DecisionFailure {
  readonly fault: ReadFault | 'wrong-shape' | 'other-question';
  readonly cause: string;
}

/**
 * Asks a decision point by the OpenID AuthZEN Authorization API 1.0: one question at its endpoint `evaluation`, several at
 * once at `evaluations`. Returns the decisions in the order of the questions. Never rejects: anything but a clear answer to
 * all questions is a failure.
 */
export async function askDecisionPoint(
  { url: baseUrl, authorization, agent }: DecisionAddress,
  { subject: id, properties, operation, requestId }: Asker,
  questions: readonly Question[],
  signal: AbortSignal,
): Promise<readonly boolean[] | DecisionFailure> {
  const evaluations = questions.map(({ action: name, taxpayer }) => ({
    action: { name },
    resource: { type: 'taxpayer', id: taxpayer },
  }));
  const endpoint = endpointFor(questions);
  const body = {
    subject: { type: 'user', id, properties },
    context: { operation },
    ...(endpoint === 'evaluation' ? evaluations[0] : { evaluations }),
  };
  const headers = { 'content-type': 'application/json', 'x-request-id': requestId };
  const post = {
    method: 'POST',
    headers: authorization === undefined ? headers : { ...headers, authorization },
    body: JSON.stringify(body),
    agent,
  };
  const url = `${baseUrl.replace(/\/+$/, '')}/access/v1/${endpoint}`;
  const answer = await readJson(url, 'application/json', signal, post);
  if ('fault' in answer) return answer;
  const read = (endpoint === 'evaluation' ? one : several).safeParse(answer.json);
  if (!read.success || read.data.length !== questions.length) {
    return { fault: 'wrong-shape', cause: 'the answer does not decide what was asked' };
  }
  // The standard requires no echo of the question; an echo that differs belongs to another question.
  const isOther = read.data.some(
    ({ subject, resource, action }, place) =>
      (subject?.id ?? id) !== id ||
      (resource?.id ?? questions[place]?.taxpayer) !== questions[place]?.taxpayer ||
      (action?.name ?? questions[place]?.action) !== questions[place]?.action,
  );
  if (isOther) return { fault: 'other-question', cause: 'the answer is about something else' };
  return read.data.map(({ decision }) => decision);
}

export function endpointFor(questions: readonly Question[]): DecisionEndpoint {
  return questions.length === 1 ? 'evaluation' : 'evaluations';
}

const named = z.object({ id: z.unknown() }).optional();
const decision = z.object({
  decision: z.boolean(),
  subject: named,
  resource: named,
  action: z.object({ name: z.unknown() }).optional(),
});
const one = decision.transform((only) => [only]);
const several = z
  .object({ subject: named, evaluations: z.array(decision) })
  .transform(({ subject, evaluations }) => evaluations.map((each) => ({ ...each, subject: each.subject ?? subject })));
