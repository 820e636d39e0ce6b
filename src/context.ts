import DataLoader from 'dataloader';
import type { Ledger } from './admission/Ledger.js';
import { type Caller, holderOf, type Scope } from './auth/caller.js';
import type { ClientLinks, CreatedLink } from './datasources/ClientLinks.js';
import type { IdentifierReader, JobId, TaxpayerId } from './datasources/identifiers.js';
import { isTerminal, type JobView, type RefreshJobs } from './datasources/RefreshJobs.js';
import type { ReadCall } from './datasources/reading.js';
import type { TokenBroker, TokenView } from './datasources/TokenBroker.js';
import type { jobWatcher, recordWatcher } from './datasources/watchers.js';
import type { ClientLinkRequest } from './datasources/wire.js';
import { badInput, GatewayError } from './errors/errors.js';
import { isNestedWithin, pathOfInfinity } from './json.js';
import type { AuditEvent, AuditLog } from './observability/AuditLog.js';
import { Trail } from './observability/Trail.js';
import type { OperationContext, OperationFacts } from './operations/OperationContext.js';

/** What every request works with; wired once in `services.ts`. */
export interface Services {
  readonly broker: TokenBroker;
  readonly jobs: RefreshJobs;
  readonly jobWatches: ReturnType<typeof jobWatcher>;
  readonly recordWatches: ReturnType<typeof recordWatcher>;
  readonly links: ClientLinks;
  readonly ids: IdentifierReader;
  /** Deepest nesting of metadata that is sent on. */
  readonly maxMetadataDepth: number;
  readonly maxAnswerBytes: number;
  readonly ledger: Ledger;
  readonly audit: AuditLog;
  /** Called before a request waits for anything: its trace follows it from here. */
  readonly onWait?: () => void;
}

type Read = readonly [name: string, start: () => Promise<unknown>];

/** One request and who makes it. Resolvers reach the service only through here. */
export class RequestContext implements OperationContext, ReadCall {
  readonly caller: Caller;
  readonly holder: string | undefined;
  readonly requestId: string;
  readonly fromRouter: boolean | undefined;
  readonly maxAnswerBytes: number;
  private reads: DataLoader<Read, unknown, string> | undefined;

  // No private names: Apollo runs operations on a copy of the context, which would lack them.
  constructor(
    private readonly facts: OperationFacts,
    private readonly services: Services,
    /** An object, because Apollo's copy of the context has to share it. */
    readonly trail = new Trail(),
  ) {
    this.caller = facts.caller;
    this.holder = holderOf(facts.caller);
    this.requestId = facts.requestId;
    this.fromRouter = facts.fromRouter;
    this.maxAnswerBytes = services.maxAnswerBytes;
  }

  /** Aborts when the caller has gone. */
  get signal(): AbortSignal {
    return this.facts.signal;
  }

  /** @throws GatewayError FORBIDDEN when the caller lacks `scope` */
  require(scope: Scope): void {
    if (this.caller.scopes.has(scope)) return;
    this.audit('access-denied', 'denied', undefined, `missing scope ${scope}`);
    throw new GatewayError('FORBIDDEN', `This needs the scope ${scope}`);
  }

  /**
   * The door to everything about a taxpayer: there is no other way to it, and it opens before any cache or call is asked,
   * so an answer never tells a caller without the right whether the taxpayer exists.
   *
   * @throws GatewayError BAD_USER_INPUT for an id that cannot be one; FORBIDDEN when the caller may not see the taxpayer
   */
  taxpayer(id: string, path = 'taxpayerId'): TaxpayerAccess {
    const taxpayerId = this.services.ids.taxpayerId(id, path);
    const { taxpayers } = this.caller;
    if (taxpayers !== 'any' && !taxpayers.has(taxpayerId)) {
      this.audit('access-denied', 'denied', taxpayerId, 'other taxpayer');
      throw new GatewayError('FORBIDDEN', 'This taxpayer is not among those the caller may see');
    }
    return new TaxpayerAccess(taxpayerId, this, this.services);
  }

  /** @throws GatewayError BAD_USER_INPUT, or as {@link ClientLinks.create} */
  async createClientLink(request: ClientLinkRequest, key: string | undefined): Promise<CreatedLink> {
    const { links, ids, maxMetadataDepth } = this.services;
    if (key !== undefined) ids.idempotencyKey(key);
    if (!isNestedWithin(request.metadata, maxMetadataDepth)) {
      throw badInput('input.metadata', `must be nested at most ${maxMetadataDepth} levels (MAX_METADATA_DEPTH)`);
    }
    const lost = pathOfInfinity(request.metadata);
    if (lost !== undefined) {
      const message = 'must be a number that a double can hold; send a larger one as a string';
      throw badInput(`input.metadata.${lost}`, message);
    }
    try {
      const idempotency = key === undefined ? undefined : { caller: this.caller.key, key };
      const created = await links.create(request, idempotency, this);
      this.audit('client-link-created', created.replayed ? 'replayed' : 'created');
      return created;
    } catch (error) {
      this.audit('client-link-created', error instanceof GatewayError ? error.code : 'INTERNAL_SERVER_ERROR');
      throw error;
    }
  }

  audit(action: AuditEvent['action'], outcome: string, taxpayer?: TaxpayerId, reason?: string): void {
    const { caller, requestId } = this;
    this.services.audit.write({ action, caller, peer: this.facts.peer, requestId, taxpayer, outcome, reason });
  }

  /** Reads once per request, however many aliases ask. */
  once<View>(name: string, start: () => Promise<View>): Promise<View> {
    this.services.onWait?.();
    this.reads ??= new DataLoader(startAll, { cacheKeyFn: ([name]) => name });
    return this.reads.load([name, start]) as Promise<View>;
  }
}

/** What a caller who may see a taxpayer can ask about them; handed out by {@link RequestContext.taxpayer} alone. */
export class TaxpayerAccess {
  constructor(
    readonly id: TaxpayerId,
    private readonly context: RequestContext,
    private readonly services: Services,
  ) {}

  /** @throws GatewayError BAD_USER_INPUT for an impossible age, or as {@link TokenBroker.record} */
  token(maxAgeSeconds?: number): TokenView | Promise<TokenView> {
    const maxAgeMs = maxAgeSeconds == null ? Infinity : 1000 * within(maxAgeSeconds, 'maxAgeSeconds', 2_592_000);
    return this.shown('record-shown', this.services.broker.record(this.id, maxAgeMs, this.context));
  }

  /** Each change of the token record, the present one first. @throws GatewayError RATE_LIMITED when the caller has no room */
  watchToken(): AsyncIterableIterator<TokenView> {
    const { holder, trail } = this.context;
    const onEnd = this.services.ledger.take('watches', holder);
    return this.services.recordWatches.watch(this.id, { holder, trail, onEnd });
  }

  /**
   * The status of a job. Waits at most `waitSeconds` for a terminal one, and not beyond the end of the request or of the
   * caller's token.
   *
   * @throws GatewayError BAD_USER_INPUT for an impossible id or time; RATE_LIMITED when the caller has no room for one more
   *   wait; or as {@link RefreshJobs.status}
   */
  refreshJob(jobId: string, waitSeconds?: number): JobView | Promise<JobView> {
    const waitMs = waitSeconds == null ? 0 : 1000 * within(waitSeconds, 'waitSeconds', 300);
    const id = this.services.ids.jobId(jobId);
    const view = this.services.jobs.status(this.id, id, undefined, this.context);
    return this.shown('job-shown', waitMs > 0 ? this.settled(id, view, waitMs) : view);
  }

  /** Each change of a job's status, the present one first. @throws GatewayError RATE_LIMITED when the caller has no room */
  watchJob(jobId: string): AsyncIterableIterator<JobView> {
    const id = this.services.ids.jobId(jobId);
    const { holder, trail } = this.context;
    const onEnd = this.services.ledger.take('watches', holder);
    return this.services.jobWatches.watch([this.id, id], { holder, trail, onEnd });
  }

  private async settled(id: JobId, present: JobView | Promise<JobView>, waitMs: number): Promise<JobView> {
    this.services.onWait?.();
    const view = await present;
    if (isTerminal(view.job)) return view;
    const { caller, holder, trail, signal } = this.context;
    const onEnd = this.services.ledger.take('watches', holder);
    const maxMs = Math.min(waitMs, caller.expiresAt - Date.now());
    return this.services.jobWatches.settle([this.id, id], view, { holder, trail, onEnd, maxMs, signal });
  }

  /** Notes what the caller gets to see, where every look is audited. */
  shown<View>(action: 'record-shown' | 'job-shown', view: View | Promise<View>): View | Promise<View> {
    if (!this.services.audit.wantsAll) return view;
    const note = (seen: View) => {
      this.context.audit(action, 'shown', this.id);
      return seen;
    };
    return view instanceof Promise ? view.then(note) : note(view);
  }
}

function within(seconds: number, path: string, max: number): number {
  if (seconds >= 0 && seconds <= max) return seconds;
  throw badInput(path, `must be from 0 to ${max}`);
}

/** DataLoader wants each failure as a value, so that one read's does not fail the others. */
async function startAll(reads: readonly Read[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(reads.map(([, start]) => start()));
  return settled.map((read) => (read.status === 'fulfilled' ? read.value : read.reason));
}
