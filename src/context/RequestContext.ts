import DataLoader from 'dataloader';
import type { Profile, Scope, TaxpayerScope } from '../auth/caller.js';
import type { Decision, DecisionPoint, Question } from '../auth/DecisionPoint.js';
import type { CreatedLink } from '../datasources/ClientLinks.js';
import { identifiers } from '../datasources/identifiers.js';
import { faultOfMetadata } from '../datasources/metadata.js';
import type { ReadCall } from '../datasources/TaxpayerService.js';
import type { ClientLinkRequest } from '../datasources/wire.js';
import { badInput, GatewayError, tokenRequired } from '../errors/errors.js';
import type { AuditAction } from '../observability/LineLimit.js';
import type { OperationContext, OperationFacts } from '../operations/Operation.js';
import { bytesLeftAfter } from '../process/json.js';
import { Trail } from '../process/Trail.js';
import type { Vocabulary } from '../schema/Vocabulary.js';
import type { RunningServices, Surroundings } from '../services.js';
import { TaxpayerAccess } from './TaxpayerAccess.js';

/** What every request works with; started once, with the gateway. */
export interface Services extends RunningServices, Pick<Surroundings, 'config'> {
  readonly vocabulary: Vocabulary;
  /** Asked about taxpayers that a token does not list; undefined where none is configured. */
  readonly decisions?: DecisionPoint | undefined;
}

/** Estimated milliseconds that a field takes after a wait: that time cannot be measured, because others run meanwhile. */
const laterFieldMs = 0.005;

/** The same of a question to the decision point. */
const questionMs = 0.05;

type Read = readonly [name: string, start: () => Promise<unknown>];

/** One request and who makes it. Resolvers reach the service only through here. */
export class RequestContext implements OperationContext, ReadCall {
  readonly holder: string | undefined;
  private reads: DataLoader<Read, unknown, string> | undefined;
  private questions: DataLoader<Question, Decision> | undefined;

  constructor(
    readonly facts: OperationFacts,
    private readonly services: Services,
    /** How many fields the operation answers; 0 once they were charged. */
    private fields: number,
    /** An event has that of its stream. */
    readonly trail = new Trail(),
  ) {
    this.holder = facts.caller.holder;
  }

  /** @throws GatewayError FORBIDDEN when the caller lacks `scope`; UNAUTHENTICATED for a router that passes no token on */
  private require(scope: Scope): void {
    const { kind, scopes } = this.facts.caller;
    if (scopes.has(scope)) return;
    this.audit('access-denied', 'denied', undefined, `missing scope ${scope}`);
    if (kind === 'router') throw new GatewayError('UNAUTHENTICATED', tokenRequired);
    throw new GatewayError('FORBIDDEN', `Missing scope: ${scope}`);
  }

  /**
   * The only door to everything about a taxpayer. It checks scope and access before anything reads a cache or calls the service,
   * so a caller without the right cannot learn whether the taxpayer exists. When the caller's token does not list the taxpayer,
   * the decision point decides about `scope`. `use` runs synchronously unless the decision point has to be called.
   *
   * @throws GatewayError BAD_USER_INPUT for an id that cannot be one; FORBIDDEN when the caller lacks `scope`, or may not see the
   *   taxpayer.
   *   Where the decision point has to be called, rejects with FORBIDDEN, AUTH_UNAVAILABLE or RATE_LIMITED.
   */
  taxpayer<T>(
    id: string,
    scope: TaxpayerScope,
    use: (taxpayer: TaxpayerAccess) => T | Promise<T>,
    path = 'taxpayerId',
  ): T | Promise<T> {
    this.require(scope);
    const taxpayerId = identifiers.taxpayerId(id, path);
    const { taxpayers } = this.facts.caller;
    const isListed = taxpayers === 'any' || taxpayers.has(taxpayerId);
    const allowed = isListed ? undefined : () => this.allow({ action: scope, taxpayer: taxpayerId });
    const access = new TaxpayerAccess(taxpayerId, this, this.services, allowed);
    const decision = allowed?.();
    return decision instanceof Promise ? decision.then(() => use(access)) : use(access);
  }

  /** A decision that allows what is asked, remembered or new. Throws or rejects when there is none. */
  private allow(question: Question): Decision | Promise<Decision> {
    const { decisions } = this.services;
    const { profile } = this.facts.caller;
    if (decisions === undefined || profile === undefined) throw this.refusal(question.taxpayer, 'other taxpayer');
    const allowing = (decision: Decision) => {
      if (decision.isAllowed) return decision;
      throw this.refusal(question.taxpayer, 'decision point: denied');
    };
    const ask = () => {
      // No cache here: the decision point remembers decisions, which may expire before the request ends.
      this.questions ??= new DataLoader<Question, Decision>((batch) => this.askTogether(decisions, profile, batch), {
        cache: false,
      });
      return this.questions.load(question);
    };
    const decision = decisions.decisionOn(question, profile, ask);
    if (!(decision instanceof Promise)) return allowing(decision);
    return decision
      .finally(() => this.resume())
      .then(allowing, (error: GatewayError) => {
        if (error.code === 'AUTH_UNAVAILABLE') {
          this.audit('access-denied', 'undecided', question.taxpayer, error.reason);
        }
        throw error;
      });
  }

  /** Asks all questions with one call. Rejects as {@link CallQueue.run} and {@link DecisionPoint.decide}. */
  private askTogether(decisions: DecisionPoint, profile: Profile, questions: readonly Question[]) {
    const { facts, holder, trail, services } = this;
    services.quota.spend(holder, questionMs * questions.length);
    return services.decisionCalls.run(holder, () => decisions.decide(profile, facts.requestId, trail, questions));
  }

  private refusal(taxpayer: string, reason: string): GatewayError {
    this.audit('access-denied', 'denied', taxpayer, reason);
    return new GatewayError('FORBIDDEN', 'You do not have access to this taxpayer');
  }

  /** @throws GatewayError FORBIDDEN without the scope, BAD_USER_INPUT, or as {@link ClientLinks.create} */
  async createClientLink(request: ClientLinkRequest, key: string | undefined): Promise<CreatedLink> {
    const { links, config } = this.services;
    const most = config.MAX_BODY_BYTES;
    this.require('client-links:create');
    const idempotency =
      key === undefined ? undefined : ([this.facts.caller.key, identifiers.idempotencyKey(key)] as const);
    // Only a document that repeats a long variable has more: the text must not be walked, written and sent hundreds of times.
    if (bytesLeftAfter(request, most) < 0) {
      throw badInput('input', `must have at most ${most} characters (MAX_BODY_BYTES)`);
    }
    const fault = faultOfMetadata(request.metadata);
    if (fault !== undefined) throw badInput(`input.metadata${fault.place}`, fault.message);
    try {
      const created = await links.create(request, idempotency, this);
      this.audit('client-link-requested', created.replayed ? 'replayed' : 'created');
      return created;
    } catch (error) {
      this.audit('client-link-requested', error instanceof GatewayError ? error.code : 'INTERNAL_SERVER_ERROR');
      throw error;
    }
  }

  audit(action: AuditAction, outcome: string, taxpayer?: string, reason?: string): void {
    const { caller, requestId, remoteAddress } = this.facts;
    this.services.lines.audit({ action, caller, remoteAddress, requestId, taxpayer, outcome, reason });
  }

  /** Reads once per request, however many aliases ask. */
  once<View>(name: string, start: () => Promise<View>): Promise<View> {
    this.reads ??= new DataLoader((batch) => this.startAll(batch), { cacheKeyFn: ([name]) => name });
    return this.reads.load([name, start]) as Promise<View>;
  }

  /**
   * Runs all reads of a batch. Their results come together, so that the access checks that follow share one call, too. A
   * failure is returned as a value: DataLoader then rejects that read alone.
   */
  private async startAll(reads: readonly Read[]): Promise<unknown[]> {
    const settled = await Promise.allSettled(reads.map(([, start]) => start()));
    await this.resume();
    return settled.map((read) => (read.status === 'fulfilled' ? read.value : read.reason));
  }

  /** Waits for a turn to resolve the fields that have waited: many operations may have waited for one answer. */
  resume(): Promise<void> {
    const ms = this.fields * laterFieldMs;
    this.fields = 0; // all fields are charged at the first wait
    return this.services.quota.resume(this.holder, ms);
  }
}
