import { unreachable } from '../errors/errors.js';
import { type Answer, answerOf, errorAnswer, jsonAnswer, upstreamOnlyText } from './Answer.js';
import type { Fault } from './Fault.js';
import { type ApiRoute, tokenRecord } from './RestApi.js';
import type { SandboxState } from './SandboxState.js';

export interface FaultyRequest {
  readonly route: ApiRoute;
  /** Carries the request out and gives the right answer. */
  readonly carryOut: () => Answer;
  readonly state: SandboxState;
}

/** The faults of what is answered; the others are faults of how it is delivered. */
export type WrongAnswerFault = Exclude<
  Fault,
  {
    kind:
      | 'never-answer'
      | 'reset-before-effect'
      | 'reset-after-effect'
      | 'answer-late'
      | 'hold-until-released'
      | 'close-after-answer'
      | 'truncate-body'
      | 'drip-body'
      | 'answer-with-huge-body'
      | 'answer-with-gzip-bomb';
  }
>;

type JsonObject = Record<string, unknown>;

const tellingField = { createClientLink: 'url', taxpayerToken: 'access_token', refreshJob: 'status' } as const;
const tellingText = { createClientLink: 'url', taxpayerToken: 'name', refreshJob: 'name' } as const;

export function wrongAnswer(fault: WrongAnswerFault, { route, carryOut, state }: FaultyRequest): Answer {
  switch (fault.kind) {
    case 'answer-with-status':
      if (fault.afterEffect) carryOut();
      return statusAnswer(fault.status, fault.headers, fault.body);
    case 'refuse-authorization':
      return errorAnswer(401, 'Refused by a fault');
    case 'redirect':
      return errorAnswer(fault.status, 'Go elsewhere', { location: fault.location });
    case 'answer-with-html':
      return answerOf(200, 'text/html', `<!doctype html><title>Sign in</title><p>${upstreamOnlyText}</p>`);
    case 'answer-with-text-that-is-not-json':
      return answerOf(carryOut().status, 'application/json', `{"text":"${upstreamOnlyText}`);
    case 'answer-with-null':
      return jsonAnswer(carryOut().status, null);
    case 'answer-with-empty-body':
      return answerOf(carryOut().status, 'application/json', '');
    case 'give-wrong-type':
      return withField(
        carryOut(),
        fault.field ?? tellingField[route.endpoint],
        fault.value === undefined ? 42 : fault.value,
      );
    case 'omit-field':
      return withField(carryOut(), fault.field ?? tellingField[route.endpoint], undefined);
    case 'give-unknown-enum-value':
      return withField(carryOut(), fault.field ?? 'status', fault.value ?? 'VALUE_FROM_THE_FUTURE');
    case 'answer-for-other-taxpayer':
      return otherTaxpayerAnswer(carryOut(), route, state, fault.taxpayerId);
    case 'answer-for-other-job':
      return withField(carryOut(), 'jobId', fault.jobId ?? 'eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee');
    case 'give-invalid-utf8':
      return invalidUtf8Answer(carryOut(), fault.field ?? tellingText[route.endpoint]);
    case 'answer-with-wrong-content-type':
      return withHeaders(carryOut(), { 'content-type': fault.contentType ?? 'text/plain' });
    case 'answer-with-wrong-success-status':
      return withStatus(carryOut(), fault.status);
    case 'nest-deeply':
      return nestedAnswer(carryOut(), fault.levels, fault.where ?? 'metadata');
    case 'answer-with-broken-gzip':
      return withHeaders(answerOf(carryOut().status, 'application/json', 'no gzip'), { 'content-encoding': 'gzip' });
    default:
      return unreachable(fault);
  }
}

function statusAnswer(status: number, headers: Record<string, string> = {}, body?: string): Answer {
  if (body === undefined) return errorAnswer(status, 'Wanted by a fault', headers);
  return withHeaders(answerOf(status, 'application/json', body), headers);
}

function withHeaders(answer: Answer, headers: Readonly<Record<string, string | number>>): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

function withStatus(answer: Answer, status = answer.status === 201 ? 200 : 201): Answer {
  return { ...answer, status };
}

/** Sets a member of the record, or leaves it out. An error answer stays as it is: there is no record in it to spoil. */
function withField(answer: Answer, field: string, value: unknown): Answer {
  if (answer.status >= 300) return answer;
  return jsonAnswer(answer.status, { ...recordIn(answer), [field]: value });
}

function otherTaxpayerAnswer(answer: Answer, route: ApiRoute, state: SandboxState, wantedId?: string): Answer {
  if (route.endpoint === 'createClientLink' || answer.status >= 300) return answer;
  const others = wantedId === undefined ? [...state.taxpayers()] : [state.taxpayer(wantedId)];
  const other = others.find((taxpayer) => taxpayer?.id !== route.taxpayerId);
  const otherId = other?.id ?? wantedId ?? '99999999-9999-4999-8999-999999999999';
  if (route.endpoint === 'refreshJob') return withField(answer, 'taxpayerId', otherId);
  return other ? jsonAnswer(answer.status, tokenRecord(other)) : withField(answer, 'taxpayer_id', otherId);
}

/** Latin-1 writes ÿþ as the bytes FF FE, which no UTF-8 text contains. */
function invalidUtf8Answer(answer: Answer, field: string): Answer {
  const text = JSON.stringify({ ...recordIn(answer), [field]: 'ÿþ' });
  return answerOf(answer.status, 'application/json', Buffer.from(text, 'latin1'));
}

/** Nested by hand: JSON.stringify would overflow the stack long before JSON.parse does. */
function nestedAnswer(answer: Answer, levels: number, where: 'metadata' | 'body'): Answer {
  const nested = `${'{"deeper":'.repeat(levels)}null${'}'.repeat(levels)}`;
  const mark = '<the nested value>';
  const record = JSON.stringify({ ...recordIn(answer), metadata: mark });
  const body = where === 'body' ? nested : record.replace(JSON.stringify(mark), () => nested);
  return answerOf(answer.status, 'application/json', body);
}

function recordIn(answer: Answer): JsonObject {
  return JSON.parse(answer.body.toString()) as JsonObject;
}
