import * as z from 'zod';
import { LeasedCache } from '../cache/LeasedCache.js';
import type { InPlace } from '../cache/ReadRequest.js';
import type { Entry } from '../cache/StoredEntries.js';
import { jitterOf } from './freshness.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { ReadCall, ReadingOptions } from './reading.js';
import type { TokenBroker } from './TokenBroker.js';
import { type JobStatus, jobStatus } from './wire.js';

/** A job's status, and when it was read from the service. */
export interface JobView {
  readonly job: JobStatus;
  /** Epoch milliseconds. */
  readonly observedAt: number;
  /** The same by the monotonic clock. */
  readonly readAt: number;
  /** For how long it had been the same by then, in milliseconds. */
  readonly unchangedForMs: number;
  readonly version: string;
}

type Observation = Pick<JobView, 'job' | 'unchangedForMs'>;

/** How long a status that can still change is answered from the cache, in milliseconds. */
export const sharedMs = 1000;
/** After this many hits in memory, a status is read again in the background before it is too old, so that nobody waits. */
const oftenShown = 10;
/** Age at which that background read begins, in milliseconds. It varies, so that statuses read together are spread. */
const renewedAtMs = (version: string): number => sharedMs * (0.75 + 0.2 * jitterOf(version));
/** How long the store keeps a status that can still change, in milliseconds. The next poll needs its `unchangedForMs`. */
const processingTtlMs = 3_600_000;

/** Whether the job's status is final (interface, 3.2). A status that we do not know counts as one that can still change. */
export function isTerminal(job: JobStatus): boolean {
  return job.status === 'completed' || job.status === 'failed';
}

/** Statuses of refresh jobs, read with the taxpayer's token and shared like the tokens themselves. */
export class RefreshJobs {
  readonly #cache: LeasedCache<Observation>;

  constructor(private readonly options: ReadingOptions & { readonly broker: TokenBroker }) {
    const { cache, store, keepMs } = options;
    this.#cache = new LeasedCache({
      ...cache,
      kind: 'job',
      store,
      workMs: 2 * cache.workMs, // the taxpayer's token may have to be read first
      codec: { encode: (observation) => observation, decode: (stored) => storedObservation.parse(stored) },
      ttlMs: ({ job }) => (isTerminal(job) ? keepMs : processingTtlMs),
      fieldOf: (id) => {
        const end = id.indexOf('/');
        return { subject: id.slice(0, end), kind: 'job', id: id.slice(end + 1) };
      },
    });
  }

  /** As {@link LeasedCache.forget}. */
  forget(taxpayerId?: string): void {
    this.#cache.forget(taxpayerId);
  }

  dropExpired(): void {
    this.#cache.dropExpired();
  }

  /** The status in memory, if {@link status} would answer with it. */
  held(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs = sharedMs): JobView | undefined {
    const entry = this.#held(taxpayerId, jobId, maxAgeMs);
    return entry && shownOf(entry).view;
  }

  /**
   * The status of a job, at most `maxAgeMs` old unless terminal; synchronously when memory has it. Gets the taxpayer's token
   * itself, and replaces a refused one by at most one fetch.
   *
   * @throws GatewayError NOT_FOUND, TAXPAYER_NOT_AUTHORIZED, TOKEN_BUDGET_EXHAUSTED, RATE_LIMITED or an `UPSTREAM_` code
   */
  status(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs = sharedMs, call: ReadCall = {}): JobView | Promise<JobView> {
    const held = this.#held(taxpayerId, jobId, maxAgeMs);
    if (held !== undefined) {
      call.trail?.read('memory');
      const shown = shownOf(held);
      shown.times += 1;
      if (shown.times >= oftenShown && !shown.renewalBegan) this.#renewWhenDue(taxpayerId, jobId, held, call);
      return shown.view;
    }
    const look = () => this.#lookUp(taxpayerId, jobId, maxAgeMs, call);
    return call.once?.(`job ${idOf(taxpayerId, jobId)}`, look) ?? look();
  }

  #held(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs: number): Entry<Observation> | undefined {
    return this.#cache.held(idOf(taxpayerId, jobId), (entry) => this.#isCurrent(entry, maxAgeMs));
  }

  /**
   * Reads the status in the background when it is old enough. The read waits until this turn's answers are given, and is
   * skipped if the status expires before a place is free. Its failure is ignored: the next caller meets it.
   */
  #renewWhenDue(taxpayerId: TaxpayerId, jobId: JobId, entry: Entry<Observation>, { holder, written }: ReadCall): void {
    const dueMs = renewedAtMs(entry.version);
    if (this.#isCurrent(entry, dueMs)) return;
    shownOf(entry).renewalBegan = true;
    const { calls } = this.options;
    const isShown = () => this.#cache.peek(idOf(taxpayerId, jobId)) === entry && this.#isCurrent(entry, sharedMs);
    const renew = async () => void (isShown() && (await this.#read(taxpayerId, jobId, dueMs, { holder, written })));
    setImmediate(() => void calls.run(holder, renew).catch(() => undefined));
  }

  async #lookUp(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs: number, call: ReadCall): Promise<JobView> {
    const inPlace: InPlace = (work) => this.options.calls.run(call.holder, work);
    return shownOf(await this.#read(taxpayerId, jobId, maxAgeMs, call, inPlace)).view;
  }

  #read(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    maxAgeMs: number,
    { holder, trail, written }: ReadCall,
    inPlace?: InPlace,
  ) {
    const { service, broker } = this.options;
    const id = idOf(taxpayerId, jobId);
    return this.#cache.read(id, {
      acceptable: (held) => this.#isCurrent(held, maxAgeMs),
      takesFetchedMeanwhile: true,
      fetch: async (signal) => {
        const call = { signal, holder, trail, written };
        const job = await broker.readWithToken(taxpayerId, call, (credential) =>
          service.refreshJob(taxpayerId, jobId, credential, call),
        );
        return this.#observationOf(id, job);
      },
      inPlace,
      holder,
      trail,
    });
  }

  #isCurrent(entry: Entry<Observation>, maxAgeMs: number): boolean {
    return isTerminal(entry.value.job) || this.#cache.isYoungerThan(entry, maxAgeMs);
  }

  #observationOf(id: string, job: JobStatus): Observation {
    const before = this.#cache.peek(id);
    const isSame = before?.value.job.status === job.status;
    const agoMs = before ? Math.max(0, performance.now() - before.readAt) : 0;
    return { job, unchangedForMs: before && isSame ? before.value.unchangedForMs + agoMs : 0 };
  }
}

/** Ids hold no slash (see `identifiers.ts`), so that no two pairs look alike. */
const idOf = (taxpayerId: TaxpayerId, jobId: JobId) => `${taxpayerId}/${jobId}`;

interface Shown {
  readonly view: JobView;
  /** How often it was shown from memory. */
  times: number;
  /** Whether the background read was begun: once per entry, successful or not. */
  renewalBegan: boolean;
}

/** Always the same object for one entry, so that what is derived from the view can be cached with it. */
function shownOf(entry: Entry<Observation>): Shown {
  const { value, fetchedAt, readAt, version } = entry;
  entry.view ??= {
    view: { ...value, observedAt: fetchedAt, readAt, version },
    times: 0,
    renewalBegan: false,
  } satisfies Shown;
  return entry.view as Shown;
}

export const storedObservation = z.object({ job: jobStatus, unchangedForMs: z.number() });
