import type { Config } from '../config/config.js';
import type { OperationRecord } from '../operations/Operation.js';
import type { LineLimit } from './LineLimit.js';

/** An operation that takes longer is slow, in milliseconds. */
const slowMs = 1000;

/**
 * Returns what writes the lines of operations at their end: for those that failed, changed something, called the token endpoint
 * or were slow; as LOG_OPERATIONS says, for every one or none. A denial that nothing else audits always gets its line.
 */
export function operationLog(lines: LineLimit, which: Config['LOG_OPERATIONS']) {
  return (record: OperationRecord, traceId: string | undefined): void => {
    const { facts, outcome, type, context, way, events } = record;
    const { calls, tokenCalls = 0 } = context?.trail ?? {};
    const ms = performance.now() - facts.startedAt;
    const isNotable = outcome !== 'ok' || type === 'mutation' || tokenCalls > 0 || ms >= slowMs;
    if (!isNotable && which !== 'all') return;
    const audit = denialIn(record);
    if (which === 'none' && audit === undefined) return;
    const common = commonFields(record, audit);
    const line = {
      level: audit === undefined ? 'info' : 'audit',
      message: 'operation',
      requestId: facts.requestId,
      common,
      caller: facts.caller,
      remoteAddress: audit && facts.remoteAddress,
      own: {
        ms: Math.round(ms * 10) / 10,
        events,
        calls: calls?.map((call) => ({ endpoint: call.endpoint, ms: Math.round(call.ms), outcome: call.outcome })),
        tokenCalls: tokenCalls || undefined,
        traceId,
      },
      general: { audit, way, outcome, codes: common.codes },
    } as const;
    // Lines with token calls are never combined, so that their `tokenCalls` add up; the budget bounds the number of lines.
    if (outcome === 'ok' || tokenCalls > 0) lines.write(line);
    else lines.pass(line);
  };
}

/** The fields that equal operations have in common, whoever their caller is. */
function commonFields(record: OperationRecord, audit: string | undefined) {
  const { facts, transport, outcome, label, type, known, status, way, codes, causes } = record;
  return {
    audit,
    operation: label,
    operationName: known?.name,
    type,
    way,
    transport,
    status,
    outcome,
    codes: codes.size > 0 ? [...codes.keys()] : undefined,
    cause: causes.length > 0 ? causes.join('; ') : undefined,
    ...facts.client,
  };
}

/** The audit event of a denial that came before there was a `RequestContext`, which audits the others. */
function denialIn({ codes, label }: OperationRecord): 'token-refused' | 'access-denied' | undefined {
  if (codes.has('UNAUTHENTICATED')) return 'token-refused';
  return label === 'none' && codes.has('FORBIDDEN') ? 'access-denied' : undefined;
}
