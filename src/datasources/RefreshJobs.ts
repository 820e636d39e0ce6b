import * as z from 'zod';
import { LeasedCache } from '../cache/LeasedCache.js';
import type { Entry } from '../cache/StoredEntries.js';
import { jitterOf } from './freshness.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { ReadCall, ReadingOptions } from './reading.js';
import type { TokenBroker } from './TokenBroker.js';
import { type JobStatus, jobStatus } from './wire.js';

/** A job's status, when it was read from the service, and when it was first seen (both in epoch milliseconds). */
export interface JobView {
  readonly job: JobStatus;
  readonly observedAt: number;
  readonly unchangedSince: number;
}

type Observation = Omit<JobView, 'observedAt'>;

/** A status that can still change is shared by everyone who asks within this time, in milliseconds. */
export const sharedMs = 1000;
/** A status that was shown so often from memory is read anew in the background, so that nobody waits for it. */
const oftenShown = 10;
/** At which age, in milliseconds. The ages differ: statuses that were read together are not read anew together. */
const renewedAtMs = (readAt: number): number => sharedMs * (0.75 + 0.2 * jitterOf(readAt));
/** How long the store keeps a status that can still change, in milliseconds: the next poll needs to know since when it is the same. */
const processingTtlMs = 3_600_000;

/** Whether the service will never report another status for the job (interface, 3.2; an unknown one may be followed by others). */
export function isTerminal(job: JobStatus): boolean {
  return job.status === 'completed' || job.status === 'failed';
}

/** Statuses of refresh jobs, read with the taxpayer's token and shared like the tokens themselves. */
export class RefreshJobs {
  readonly #cache: LeasedCache<Observation>;

  constructor(private readonly options: ReadingOptions & { readonly broker: TokenBroker }) {
    const { cache, store, keepMs, runtime } = options;
    this.#cache = new LeasedCache({
      ...cache,
      kind: 'job',
      store,
      codec: { encode: (observation) => observation, decode: (stored) => storedObservation.parse(stored) },
      ttlMs: ({ job }) => (isTerminal(job) ? keepMs : processingTtlMs),
      subjectOf: (id) => id.slice(0, id.indexOf('/')),
      runtime,
    });
  }

  /** As {@link LeasedCache.forget}. */
  forget(taxpayerId?: string): void {
    this.#cache.forget(taxpayerId);
  }

  /** As {@link LeasedCache.endLeases}. */
  endLeases(): Promise<void> {
    return this.#cache.endLeases();
  }

  dropExpired(): void {
    this.#cache.dropExpired();
  }

  /** The status when memory holds one that {@link status} would answer with. */
  held(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs = sharedMs): JobView | undefined {
    const entry = this.#held(taxpayerId, jobId, maxAgeMs);
    return entry && shownOf(entry).view;
  }

  /**
   * The status of a job, at most `maxAgeMs` old unless terminal; at once when memory has it. Finds the taxpayer's token by
   * itself; one that the service refuses is replaced once.
   *
   * @throws GatewayError NOT_FOUND, TAXPAYER_NOT_AUTHORIZED, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code
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
   * After the answers of this turn, and only while the status can still be shown: when no place was free that long, nobody may
   * be asking for it any more. A failure is left to those who do.
   */
  #renewWhenDue(taxpayerId: TaxpayerId, jobId: JobId, entry: Entry<Observation>, { holder }: ReadCall): void {
    const dueMs = renewedAtMs(entry.fetchedAt);
    if (this.#isCurrent(entry, dueMs)) return;
    shownOf(entry).renewalBegan = true;
    const { places, runtime } = this.options;
    const isShown = () => this.#cache.peek(idOf(taxpayerId, jobId)) === entry && this.#isCurrent(entry, sharedMs);
    const renew = async () => void (isShown() && (await this.#read(taxpayerId, jobId, dueMs, { holder })));
    runtime.setImmediate(() => void places.run(holder, renew).catch(() => undefined));
  }

  async #lookUp(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs: number, call: ReadCall): Promise<JobView> {
    const read = () => this.#read(taxpayerId, jobId, maxAgeMs, call);
    return shownOf(await this.options.places.run(call.holder, read)).view;
  }

  #read(taxpayerId: TaxpayerId, jobId: JobId, maxAgeMs: number, { holder, trail }: ReadCall) {
    const { service, broker } = this.options;
    const id = idOf(taxpayerId, jobId);
    return this.#cache.read(id, {
      acceptable: (held) => this.#isCurrent(held, maxAgeMs),
      takesFetchedMeanwhile: true,
      prepare: () => broker.credential(taxpayerId, undefined, { holder, trail }),
      fetch: async (first, signal) => {
        const job = await broker.readWithToken(taxpayerId, first, { signal, holder, trail }, (credential) =>
          service.refreshJob(taxpayerId, jobId, credential, { holder, trail, signal }),
        );
        return this.#observationOf(id, job);
      },
      holder,
      trail,
    });
  }

  #isCurrent(entry: Entry<Observation>, maxAgeMs: number): boolean {
    return isTerminal(entry.value.job) || this.#cache.isYoungerThan(entry, maxAgeMs);
  }

  #observationOf(id: string, job: JobStatus): Observation {
    const before = this.#cache.peek(id)?.value;
    const now = this.options.runtime.now();
    // Never later than now: a clock that was ahead would keep the polls at their fastest until it is caught up with.
    return { job, unchangedSince: before?.job.status === job.status ? Math.min(before.unchangedSince, now) : now };
  }
}

/** Ids hold no slash (see `identifiers.ts`), so that no two pairs look alike. */
const idOf = (taxpayerId: TaxpayerId, jobId: JobId) => `${taxpayerId}/${jobId}`;

interface Shown {
  readonly view: JobView;
  /** How often it was shown from memory. */
  times: number;
  /** It is read anew in the background once, with or without success. */
  renewalBegan: boolean;
}

/** Of one entry always the same, so that what is made of the view can be kept with it. */
function shownOf(entry: Entry<Observation>): Shown {
  const { job, unchangedSince } = entry.value;
  entry.view ??= {
    view: { job, observedAt: entry.fetchedAt, unchangedSince },
    times: 0,
    renewalBegan: false,
  } satisfies Shown;
  return entry.view as Shown;
}

export const storedObservation = z.object({ job: jobStatus, unchangedSince: z.number() });
