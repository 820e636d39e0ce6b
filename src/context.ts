import DataLoader from 'dataloader';
import type { Ledger, Release } from './admission/Ledger.js';
import { type Caller, holderOf, type Scope } from './auth/caller.js';
import type { ClientLinks } from './datasources/ClientLinks.js';
import type { IdentifierReader, JobId, TaxpayerId } from './datasources/identifiers.js';
import type { JobWatcher } from './datasources/JobWatcher.js';
import { isTerminal, type JobView, type RefreshJobs } from './datasources/RefreshJobs.js';
import type { TokenBroker, TokenView } from './datasources/TokenBroker.js';
import type { ClientLinkRequest } from './datasources/wire.js';
import { badInput, GatewayError } from './errors/errors.js';
import { isNestedWithin, pathOfInfinity } from './json.js';
import type { OperationContext, OperationFacts } from './operations/OperationContext.js';
import { RefreshJob } from './schema/RefreshJob.js';
import type { Taxpayer } from './schema/Taxpayer.js';
import { TaxpayerToken } from './schema/TaxpayerToken.js';
import type { Vocabulary } from './schema/Vocabulary.js';

/** What every request works with; wired once in `server.ts`. */
export interface Services {
  readonly broker: TokenBroker;
  readonly jobs: RefreshJobs;
  readonly watcher: JobWatcher;
  readonly links: ClientLinks;
  readonly ids: IdentifierReader;
  /** Deepest nesting of metadata that is sent on. */
  readonly maxMetadataDepth: number;
  /** MAX_ANSWER_BYTES */
  readonly maxAnswerBytes: number;
  readonly vocabulary: Vocabulary;
  /** What callers hold of this process. */
  readonly ledger: Ledger;
  /** Notes who was given what, for the audit log. */
  readonly audit: (event: AuditEvent) => void;
  /** Keyed hash of a taxpayer id: the only form in which one may be written down. */
  readonly pseudonym: (id: TaxpayerId) => string;
}

export interface AuditEvent {
  readonly action: 'token-revealed' | 'client-link-created';
  readonly caller: Caller;
  readonly requestId: string;
  readonly taxpayer?: TaxpayerId;
  readonly outcome: string;
}

/** One request and who makes it. Resolvers reach the service only through here. */
export class RequestContext implements OperationContext {
  readonly caller: Caller;
  /** Under whose name what this request takes is counted. */
  readonly holder: string | undefined;
  readonly requestId: string;
  readonly fromRouter: boolean | undefined;
  private readonly facts: OperationFacts;
  // Not `#services`: Apollo runs operations on a copy of the context, and a copy has no private names.
  private readonly services: Services;
  private tokenLoader: DataLoader<{ id: TaxpayerId; maxAgeMs: number }, TokenView, string> | undefined;
  private jobLoader: DataLoader<{ taxpayerId: TaxpayerId; jobId: JobId }, JobView, string> | undefined;

  constructor(facts: OperationFacts, services: Services) {
    this.caller = facts.caller;
    this.holder = holderOf(facts.caller);
    this.requestId = facts.requestId;
    this.fromRouter = facts.fromRouter;
    this.facts = facts;
    this.services = services;
  }

  /** Aborts when nobody waits for the answer any more; most requests never ask. */
  get signal(): AbortSignal {
    return this.facts.signal;
  }

  /** Bytes of the largest answer there may be. */
  get maxAnswerBytes(): number {
    return this.services.maxAnswerBytes;
  }

  /** @throws GatewayError FORBIDDEN when the caller lacks `scope` */
  require(scope: Scope): void {
    if (!this.caller.scopes.has(scope)) throw new GatewayError('FORBIDDEN', `This needs the scope ${scope}`);
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
      throw new GatewayError('FORBIDDEN', 'This taxpayer is not among those the caller may see');
    }
    return new TaxpayerAccess(taxpayerId, this, this.services);
  }

  /** The taxpayer as another subgraph refers to it; each of its fields asks for its own scope. */
  taxpayerReference(id: string): Taxpayer {
    if (!this.caller.scopes.has('refresh-jobs:read')) this.require('taxpayers:read');
    return { id: this.taxpayer(id, 'id').id };
  }

  /** @throws GatewayError BAD_USER_INPUT, FORBIDDEN, or as {@link TokenBroker.record} */
  taxpayerToken(id: string, maxAgeSeconds: number | undefined): TaxpayerToken | Promise<TaxpayerToken> {
    const access = this.taxpayer(id);
    const maxAgeMs = maxAgeSeconds == null ? Infinity : 1000 * within(maxAgeSeconds, 'maxAgeSeconds', 2_592_000);
    return whenReady(access.token(maxAgeMs), (view) => TaxpayerToken.of(view, this.services.vocabulary));
  }

  /** @throws GatewayError BAD_USER_INPUT, FORBIDDEN, or as {@link RefreshJobs.status} */
  refreshJob(taxpayerId: string, jobId: string, waitSeconds?: number): RefreshJob | Promise<RefreshJob> {
    const access = this.taxpayer(taxpayerId);
    const waitMs = waitSeconds == null ? 0 : 1000 * within(waitSeconds, 'waitSeconds', 300);
    const view = waitMs > 0 ? access.settledJob(jobId, waitMs) : access.refreshJob(jobId);
    return whenReady(view, (ready) => RefreshJob.of(ready, this.services.vocabulary));
  }

  /** Each change of a job's status, the present one first. @throws GatewayError BAD_USER_INPUT, FORBIDDEN or RATE_LIMITED */
  watchRefreshJob(taxpayerId: string, jobId: string): AsyncIterableIterator<JobView> {
    return this.taxpayer(taxpayerId).watchJob(jobId);
  }

  /** A status that a watch brought, through the same door again. @throws GatewayError FORBIDDEN */
  refreshJobSeen(view: JobView): RefreshJob {
    this.taxpayer(view.job.taxpayerId);
    return RefreshJob.of(view, this.services.vocabulary);
  }

  /** @throws GatewayError BAD_USER_INPUT, or as {@link ClientLinks.create} */
  async createClientLink(request: ClientLinkRequest, idempotencyKey: string | undefined) {
    this.services.ids.idempotencyKey(idempotencyKey);
    if (!isNestedWithin(request.metadata, this.services.maxMetadataDepth)) {
      throw badInput(
        'input.metadata',
        `must be nested at most ${this.services.maxMetadataDepth} levels (MAX_METADATA_DEPTH)`,
      );
    }
    const lost = pathOfInfinity(request.metadata);
    if (lost !== undefined) {
      throw badInput(
        `input.metadata.${lost}`,
        'must be a number that a double can hold; send a larger one as a string',
      );
    }
    const note = (outcome: string) => {
      this.services.audit({ action: 'client-link-created', caller: this.caller, requestId: this.requestId, outcome });
    };
    try {
      const idempotency = idempotencyKey === undefined ? undefined : { caller: this.caller.key, key: idempotencyKey };
      const created = await this.services.links.create(request, idempotency, { holder: this.holder });
      note(created.replayed ? 'replayed' : 'created');
      return created;
    } catch (error) {
      note(error instanceof GatewayError ? error.code : 'INTERNAL_SERVER_ERROR');
      throw error;
    }
  }

  /** Within one request a record is looked up once, whatever the number of aliases; built when first needed. */
  get tokens() {
    const call = { holder: this.holder };
    this.tokenLoader ??= new DataLoader(
      (keys) => settleAll(keys.map(({ id, maxAgeMs }) => this.services.broker.record(id, maxAgeMs, call))),
      { cacheKeyFn: ({ id, maxAgeMs }) => `${maxAgeMs} ${id}` },
    );
    return this.tokenLoader;
  }

  /** As {@link tokens}, for job statuses. */
  get jobs() {
    const call = { holder: this.holder };
    this.jobLoader ??= new DataLoader(
      (keys) =>
        settleAll(keys.map(({ taxpayerId, jobId }) => this.services.jobs.status(taxpayerId, jobId, undefined, call))),
      { cacheKeyFn: ({ taxpayerId, jobId }) => JSON.stringify([taxpayerId, jobId]) },
    );
    return this.jobLoader;
  }
}

/** What a caller who may see a taxpayer can ask about them; handed out by {@link RequestContext.taxpayer} alone. */
export class TaxpayerAccess {
  constructor(
    readonly id: TaxpayerId,
    private readonly context: RequestContext,
    private readonly services: Services,
  ) {}

  /** The token record; at once when memory holds a fresh one. @throws GatewayError as {@link TokenBroker.record} */
  token(maxAgeMs = Infinity): TokenView | Promise<TokenView> {
    return this.services.broker.held(this.id, maxAgeMs) ?? this.context.tokens.load({ id: this.id, maxAgeMs });
  }

  /** The status of a job; at once when memory holds a fresh one. @throws GatewayError as {@link RefreshJobs.status} */
  refreshJob(jobId: string): JobView | Promise<JobView> {
    const id = this.services.ids.jobId(jobId);
    return this.services.jobs.held(this.id, id) ?? this.context.jobs.load({ taxpayerId: this.id, jobId: id });
  }

  /**
   * The status once it is terminal, or as it is when `waitMs` are over, the caller has gone or their token has expired.
   *
   * @throws GatewayError RATE_LIMITED when the caller has no room for one more wait, or as {@link RefreshJobs.status}
   */
  async settledJob(jobId: string, waitMs: number): Promise<JobView> {
    const view = await this.refreshJob(jobId);
    if (isTerminal(view.job)) return view;
    const { caller, holder, signal } = this.context;
    const allowedMs = Math.min(waitMs, caller.expiresAt - Date.now());
    const leave = this.takeWatch();
    const id = this.services.ids.jobId(jobId);
    return this.services.watcher.settle(this.id, id, view, { waitMs: allowedMs, signal, holder }).finally(leave);
  }

  /** Each change of a job's status, the present one first. @throws GatewayError RATE_LIMITED when the caller has no room */
  watchJob(jobId: string): AsyncIterableIterator<JobView> {
    const id = this.services.ids.jobId(jobId);
    return this.services.watcher.watch(this.id, id, { holder: this.context.holder, onEnd: this.takeWatch() });
  }

  private takeWatch(): Release {
    return this.services.ledger.take('watches', this.context.holder);
  }

  /** Notes that the token itself was shown. */
  noteReveal(): void {
    const { caller, requestId } = this.context;
    this.services.audit({ action: 'token-revealed', caller, requestId, taxpayer: this.id, outcome: 'revealed' });
  }
}

/** A value at hand is used at once: a promise for what is known already costs a turn of the event loop. */
function whenReady<T, R>(value: T | Promise<T>, use: (value: T) => R): R | Promise<R> {
  return value instanceof Promise ? value.then(use) : use(value);
}

function within(seconds: number, path: string, max: number): number {
  if (seconds >= 0 && seconds <= max) return seconds;
  throw badInput(path, `must be from 0 to ${max}`);
}

/** DataLoader wants each failure as a value, so that one key's does not fail the others. */
function settleAll<T>(reads: readonly (T | Promise<T>)[]): Promise<(T | Error)[]> {
  return Promise.all(reads.map((read) => (read instanceof Promise ? read.catch((error: Error) => error) : read)));
}
