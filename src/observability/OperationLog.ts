import type { EndedOperation } from '../operations/observeOperations.js';
import type { Logger } from './log.js';
import type { Pseudonyms } from './Pseudonyms.js';
import type { RepeatedLines } from './RepeatedLines.js';

export interface OperationLogOptions {
  readonly log: Logger;
  readonly pseudonyms: Pseudonyms;
  readonly repeated: RepeatedLines;
  readonly which: 'notable' | 'all' | 'none';
  readonly slowMs: number;
  /** The trace of the operation that is ending: its line may be written later, when another is under way. */
  readonly traceId?: (() => string | undefined) | undefined;
}

const noCalls: readonly never[] = [];
const noReads = { memory: 0, store: 0, service: 0 };

/** One line for each operation at its end, with names of closed sets and keyed hashes alone. */
export class OperationLog {
  /** From which duration on {@link end} is wanted for an operation that went well, in milliseconds. */
  readonly fromMs: number;
  readonly #log: Logger;

  constructor(private readonly options: OperationLogOptions) {
    const { which, slowMs, log } = options;
    this.fromMs = which === 'all' ? 0 : which === 'none' ? Number.POSITIVE_INFINITY : slowMs;
    this.#log = log.child({}, { redact: [] }); // its lines have fields of ours and no others
  }

  end(ended: EndedOperation): void {
    if (this.options.which === 'none') return;
    const { facts, transport, outcome, label = 'none', type = 'none', codes, causes, trail, events } = ended;
    const { caller, client, requestId } = facts;
    const common = {
      operation: label,
      type,
      transport,
      outcome,
      codes,
      ...(causes.length > 0 && { cause: causes.join('; ') }),
      ...(caller && { caller: this.options.pseudonyms.caller(caller.key), callerKind: caller.kind }),
      ...client,
    };
    const own = {
      requestId,
      ms: Math.round((performance.now() - facts.startedAt) * 10) / 10,
      ...(events !== undefined && { events }),
      calls: trail?.calls ?? noCalls,
      ...(trail && trail.callCount > trail.calls.length && { callCount: trail.callCount }),
      tiers: trail ? tiersOf(trail) : noReads,
      traceId: this.options.traceId?.(),
    };
    if (outcome === 'ok') this.#write({ ...own, ...common });
    else this.options.repeated.note({ write: this.#write, common, own, general: { outcome, codes } });
  }

  readonly #write = (fields: object) => this.#log.info(fields, 'operation');
}

function tiersOf({ memory, store, service, shared }: NonNullable<EndedOperation['trail']>) {
  return shared > 0 ? { memory, store, service, shared } : { memory, store, service };
}
