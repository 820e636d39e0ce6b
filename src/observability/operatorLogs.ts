import type { Sealer } from '../cache/sealing.js';
import type { Config } from '../config/config.js';
import type { OperationRecord } from '../operations/OperationRecord.js';
import type { UntrustedDocument } from '../operations/TrustedDocuments.js';
import { AuditLog } from './AuditLog.js';
import type { Logger } from './log.js';
import { OperationLog } from './OperationLog.js';
import { RepeatedLines } from './RepeatedLines.js';
import type { LogDestination } from './StandardOutput.js';

export interface OperatorLogsOptions {
  readonly config: Pick<Config, 'operationLog' | 'audit'>;
  readonly log: Logger;
  readonly destination: LogDestination;
  readonly sealer: Sealer;
  /** The id of the trace under way; undefined without tracing. */
  readonly traceId: (() => string | undefined) | undefined;
}

export type OperatorLogs = ReturnType<typeof operatorLogs>;

/** The log lines for operators and auditors. Equal lines of any kind are merged once a second. */
export function operatorLogs({ config, log, destination, sealer, traceId }: OperatorLogsOptions) {
  const repeated = new RepeatedLines();
  const shared = { log, sealer, repeated, traceId };
  const operationLog = new OperationLog({ ...shared, ...config.operationLog, destination });
  return {
    /** Called when a document that is not trusted was allowed to run. */
    onUntrusted: ({ requestId, ...common }: UntrustedDocument) => {
      const { hash, operation, client, clientVersion } = common;
      const key = `untrusted\n${hash}\n${operation}\n${client}\n${clientVersion}`;
      if (repeated.count(key, requestId)) return;
      const write = (fields: object) => log.warn(fields, 'untrusted document');
      repeated.note({ write, key, common, own: { requestId, traceId: traceId?.() }, general: { operation } });
    },
    audit: new AuditLog({ ...shared, which: config.audit }),
    operationLog,
    flush: () => repeated.flush(),
  };
}

/** Logs an operation, and audits a denial that came before there was a `RequestContext` to audit it. */
export function whenOperationsEnd({
  operationLog,
  audit,
}: Pick<OperatorLogs, 'operationLog' | 'audit'>): (record: OperationRecord) => void {
  return (record) => {
    const { codes, label, causes, facts } = record;
    if (codes.size > 0) {
      const { caller, peer, requestId } = facts;
      const isRefusedToken = codes.has('UNAUTHENTICATED');
      if (isRefusedToken || (label === 'none' && codes.has('FORBIDDEN'))) {
        const action = isRefusedToken ? 'token-refused' : 'access-denied';
        audit.write({ action, outcome: 'denied', caller, peer, requestId, reason: causes.join('; ') });
      }
    }
    operationLog.end(record);
  };
}
