import type { Decision } from '../auth/DecisionPoint.js';
import { identifiers, type JobId, type TaxpayerId } from '../datasources/identifiers.js';
import type { LatestValue } from '../datasources/LatestValue.js';
import { isFinalJob, type JobView, jobKey } from '../datasources/RefreshJobs.js';
import type { TokenView } from '../datasources/tokenAnswer.js';
import type { Timed, Watcher, WatchOptions } from '../datasources/Watcher.js';
import { badInput } from '../errors/errors.js';
import { pause } from '../process/pause.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { TaxpayerToken } from '../schema/Taxpayer.js';
import type { ShownType } from '../schema/Vocabulary.js';
import type { RequestContext, Services } from './RequestContext.js';

/** Gets the decision that lets the caller see a taxpayer at this moment. Throws or rejects when there is none. */
type Allowed = () => Decision | Promise<Decision>;

/** Longest time that a query may wait for a job. */
export const longestWaitSeconds = 300;
/** Greatest age that a query may accept: 30 days. */
const longestAgeSeconds = 2_592_000;

/** What a caller who may see a taxpayer can ask about them; handed out by {@link RequestContext.taxpayer} alone. */
export class TaxpayerAccess {
  constructor(
    readonly id: TaxpayerId,
    private readonly context: RequestContext,
    private readonly services: Services,
    /** Undefined for a taxpayer that the caller's token lists: nothing can withdraw that right. */
    private readonly allowed?: Allowed,
  ) {}

  /** @throws GatewayError BAD_USER_INPUT for an impossible age, or as {@link TokenBroker.record} */
  record(maxAgeSeconds?: number): TaxpayerToken | Promise<TaxpayerToken> {
    const maxAgeMs = maxAgeSeconds == null ? Infinity : msOf(maxAgeSeconds, 'maxAgeSeconds', longestAgeSeconds);
    return this.disclose(TaxpayerToken, 'record-shown', this.services.broker.record(this.id, this.context, maxAgeMs));
  }

  /** The token record now and after each change. @throws GatewayError RATE_LIMITED when there is no room for the watch */
  watchRecord(): AsyncIterableIterator<TokenView> {
    return this.watch(this.services.broker.watches, this.id);
  }

  /**
   * The status of a job. Waits at most `waitSeconds` for a final one, and not beyond the end of the request or of the
   * caller's token.
   *
   * @throws GatewayError BAD_USER_INPUT for an impossible id or time; RATE_LIMITED when the caller has no room for one more
   *   wait; or as {@link RefreshJobs.status}
   */
  refreshJob(jobId: string, waitSeconds?: number): RefreshJob | Promise<RefreshJob> {
    const waitMs = msOf(waitSeconds ?? 0, 'waitSeconds', longestWaitSeconds);
    const id = identifiers.jobId(jobId);
    const view = this.services.jobs.status(this.id, id, this.context);
    return this.disclose(RefreshJob, 'job-shown', waitMs > 0 ? this.untilFinal(id, view, waitMs) : view);
  }

  /** A job's status now and after each change. @throws GatewayError RATE_LIMITED when there is no room for the watch */
  watchJob(jobId: string): AsyncIterableIterator<JobView> {
    return this.watch(this.services.jobs.watches, jobKey(this.id, identifiers.jobId(jobId)));
  }

  /** Begins a watch. It ends as {@link RequestContext.taxpayer} fails when its decision expires and no new one allows it. */
  private watch<View extends Timed>(watcher: Watcher<View>, id: string, until: WatchOptions = {}): LatestValue<View> {
    const { allowed } = this;
    const { places } = this.services;
    const { holder, trail } = this.context;
    const release = places.take('watches', holder);
    const ended = new AbortController();
    const onEnd = () => {
      ended.abort();
      release();
    };
    const watch = watcher.watch(id, { ...until, holder, trail, onEnd });
    if (allowed) keepAsking(allowed, ended.signal).catch((error) => watch.fail(error));
    return watch;
  }

  /** Waits for a final status, and returns the last one that was seen. */
  private async untilFinal(id: JobId, present: JobView | Promise<JobView>, waitMs: number): Promise<JobView> {
    let view = await present;
    if (isFinalJob(view.value.job)) return view;
    const { caller, signal } = this.context.facts;
    const maxMs = Math.min(waitMs, caller.expiresAt - Date.now());
    const watch = this.watch(this.services.jobs.watches, jobKey(this.id, id), { maxMs, signal });
    try {
      for await (const latest of watch) view = latest;
    } finally {
      await this.context.resume();
    }
    return view;
  }

  /** Gives the caller the access token of a record, and audits it. The caller needs the scope for it. */
  reveal({ secretToken }: TaxpayerToken): string {
    this.context.audit('token-revealed', 'revealed', this.id);
    return secretToken.reveal();
  }

  /** Shows a view to the caller: checks access again after a wait, and audits it, if the audit log takes every view. */
  disclose<View extends object, Shown>(
    type: ShownType<View, Shown>,
    action: 'record-shown' | 'job-shown',
    view: View | Promise<View>,
  ): Shown | Promise<Shown> {
    if (view instanceof Promise) {
      return view.then(async (seen) => {
        await this.allowed?.();
        return this.disclose(type, action, seen);
      });
    }
    const { config, vocabulary } = this.services;
    if (config.AUDIT === 'all') this.context.audit(action, 'shown', this.id);
    return vocabulary.show(type, view);
  }
}

/** Gets a new decision whenever one expires, until `ended` aborts. Rejects when there is none that allows access. */
async function keepAsking(allowed: Allowed, ended: AbortSignal): Promise<void> {
  while (!ended.aborted) {
    const { until } = await allowed();
    await pause(until - performance.now(), ended);
  }
}

function msOf(seconds: number, path: string, most: number): number {
  if (seconds >= 0 && seconds <= most) return 1000 * seconds;
  throw badInput(path, `must be from 0 to ${most}`);
}
