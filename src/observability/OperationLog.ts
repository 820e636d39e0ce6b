import type { Sealer } from '../cache/sealing.js';
import type { OperationRecord } from '../operations/OperationRecord.js';
import type { Logger } from './log.js';
import type { RepeatedLines } from './RepeatedLines.js';
import type { LogDestination } from './StandardOutput.js';

export interface OperationLogOptions {
  readonly log: Pick<Logger, 'isLevelEnabled'>;
  readonly destination: LogDestination;
  /** Makes the keyed hashes of callers. */
  readonly sealer: Sealer;
  readonly repeated: RepeatedLines;
  readonly which: 'notable' | 'all' | 'none';
  readonly slowMs: number;
  /** Id of the current trace. Read when the operation ends: its line may be written later, during another trace. */
  readonly traceId?: (() => string | undefined) | undefined;
}

/** With `all`, a line of an operation that went well waits at most this long for others, in milliseconds. */
const longestWaitMs = 10;
const noCalls: readonly never[] = [];
const noReads = { memory: 0, store: 0, service: 0 };

/** Writes one line for each operation at its end. It holds names of closed sets, keyed hashes and plain client names. */
export class OperationLog {
  /** Shortest duration of a successful operation that has a line, in milliseconds. */
  readonly #fromMs: number;
  readonly #isOff: boolean;
  readonly #withinMs: number;

  constructor(private readonly options: OperationLogOptions) {
    const { which, slowMs, log } = options;
    // With a line for every operation, lines are batched: one system call per line would cost more than the line.
    this.#withinMs = which === 'all' ? longestWaitMs : 0;
    this.#isOff = which === 'none' || !log.isLevelEnabled('info');
    this.#fromMs = this.#isOff ? Number.POSITIVE_INFINITY : which === 'all' ? 0 : slowMs;
  }

  /** Writes a line for an operation that failed, changed something, called the token endpoint or was slow. */
  end(record: OperationRecord): void {
    if (this.#isOff) return;
    const { facts, transport, outcome, label, type, way, causes, trail, events } = record;
    const ended = performance.now() - facts.startedAt;
    const isNotable = outcome !== 'ok' || type === 'mutation' || (trail !== undefined && trail.tokenCalls > 0);
    if (!isNotable && ended < this.#fromMs) return;
    const ms = Math.round(ended * 10) / 10;
    if (outcome === 'ok') {
      this.options.destination.write(this.#lineOfSuccess(record, ms), this.#withinMs);
      return;
    }
    const codes = [...record.codes.keys()];
    const { caller, client } = facts;
    const { tokenCalls = 0 } = trail ?? {};
    const { sealer, repeated } = this.options;
    const program = `${client?.client}\n${client?.clientVersion}`;
    const key = `${transport}\n${outcome}\n${type}\n${way}\n${label}\n${codes}\n${causes}\n${caller?.key}\n${program}`;
    // Lines with token calls are never combined, so that they add up to all of them; the budget bounds their number.
    if (tokenCalls === 0 && repeated.count(key, facts.requestId)) return;
    const own = {
      requestId: facts.requestId,
      ms,
      events,
      calls: trail?.calls ?? noCalls,
      callCount: trail?.calls && trail.callCount > trail.calls.length ? trail.callCount : undefined,
      tokenCalls: tokenCalls > 0 ? tokenCalls : undefined,
      tiers: trail ? tiersOf(trail) : noReads,
      traceId: this.options.traceId?.(),
    };
    const common = {
      operation: label,
      type,
      way,
      transport,
      outcome,
      codes,
      cause: causes.length > 0 ? causes.join('; ') : undefined,
      caller: caller && sealer.digest('caller', caller.key),
      callerKind: caller?.kind,
      client: client?.client,
      clientVersion: client?.clientVersion,
    };
    if (tokenCalls > 0) this.#write({ ...own, ...common });
    else repeated.note({ write: this.#write, key, common, own, general: { outcome, codes } });
  }

  /**
   * A faster {@link lineOf} for successful operations, which are the most. Nothing needs escaping: names are of closed sets,
   * and texts that clients choose were reduced to plain characters.
   */
  #lineOfSuccess({ facts, transport, label, type, way, trail, events }: OperationRecord, ms: number): string {
    const { caller, client, requestId } = facts;
    const {
      memory = 0,
      store = 0,
      service = 0,
      shared = 0,
      calls = noCalls,
      callCount = 0,
      tokenCalls = 0,
    } = trail ?? {};
    const traceId = this.options.traceId?.();
    const who = caller
      ? `,"caller":"${this.options.sealer.digest('caller', caller.key)}","callerKind":"${caller.kind}"`
      : '';
    return (
      `${opening()}"requestId":"${requestId}","ms":${ms}${events === undefined ? '' : `,"events":${events}`}` +
      `,"calls":${calls.length > 0 ? JSON.stringify(calls) : '[]'}` +
      `${callCount > calls.length ? `,"callCount":${callCount}` : ''}` +
      `${tokenCalls > 0 ? `,"tokenCalls":${tokenCalls}` : ''}` +
      `,"tiers":{"memory":${memory},"store":${store},"service":${service}${shared > 0 ? `,"shared":${shared}` : ''}}` +
      `${traceId === undefined ? '' : `,"traceId":"${traceId}"`}` +
      `,"operation":"${label}","type":"${type}"${way === undefined ? '' : `,"way":"${way}"`}` +
      `,"transport":"${transport}","outcome":"ok","codes":[]${who}` +
      `${client?.client === undefined ? '' : `,"client":"${client.client}"`}` +
      `${client?.clientVersion === undefined ? '' : `,"clientVersion":"${client.clientVersion}"`},"msg":"operation"}\n`
    );
  }

  readonly #write = (fields: object) => this.options.destination.write(lineOf(fields));
}

/** The line that the logger would write, in a fraction of the logger's time. */
function lineOf(fields: object): string {
  return `${opening()}${JSON.stringify(fields).slice(1, -1)},"msg":"operation"}\n`;
}

function opening(): string {
  return `{"level":"info","time":"${isoTime(Date.now())}","pid":${process.pid},`;
}

const latest = { ms: 0, text: '' };

/** Formats a time, once per millisecond. */
function isoTime(ms: number): string {
  if (ms !== latest.ms) Object.assign(latest, { ms, text: new Date(ms).toISOString() });
  return latest.text;
}

function tiersOf({ memory, store, service, shared }: NonNullable<OperationRecord['trail']>) {
  return shared > 0 ? { memory, store, service, shared } : { memory, store, service };
}
