import { z } from 'zod';
import { LeasedCache, type ReadRequest } from '../cache/LeasedCache.js';
import type { Codec, Entry } from '../cache/StoredEntries.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { Credential } from './TaxpayerService.js';
import type { ReadingOptions, TokenBroker } from './TokenBroker.js';
import { type JobStatus, jobStatus } from './wire.js';

/** A job's status as the service gave it. */
export interface JobView {
  readonly job: JobStatus;
  /** When the gateway read it from the service, in epoch milliseconds. */
  readonly observedAt: number;
  /** When the present status was first observed, in epoch milliseconds. */
  readonly unchangedSince: number;
}

export interface RefreshJobsOptions extends ReadingOptions {
  readonly broker: TokenBroker;
}

interface Observation {
  readonly job: JobStatus;
  readonly unchangedSince: number;
}

/** A status that can still change is shared by everyone who asks within this time, in milliseconds. */
export const sharedMs = 1000;
const terminalTtlMs = 30 * 24 * 3_600_000; // it never changes again, so this only bounds the store
const processingTtlMs = 3_600_000; // so that its history is known to the next poll

/** Whether the service will never report another status for the job (interface, 3.2; an unknown one may be followed by others). */
export function isTerminal(job: JobStatus): boolean {
  return job.status === 'completed' || job.status === 'failed';
}

/** Statuses of refresh jobs, read with the taxpayer's token and shared like the tokens themselves. */
export class RefreshJobs {
  readonly #options: RefreshJobsOptions;
  readonly #now: () => number;
  readonly #cache: LeasedCache<Observation>;

  constructor(options: RefreshJobsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#cache = new LeasedCache({
      ...options.cache,
      kind: 'job',
      store: options.store,
      codec: observationCodec,
      ttlMs: ({ job }) => (isTerminal(job) ? terminalTtlMs : processingTtlMs),
      now: this.#now,
    });
  }

  /** The status when memory holds one that {@link status} would answer with; asks nobody. */
  held(taxpayerId: TaxpayerId, jobId: JobId): JobView | undefined {
    const entry = this.#cache.held(idOf(taxpayerId, jobId), (held) => this.#isCurrent(held, sharedMs));
    return entry && viewOf(entry);
  }

  /**
   * The status of a job, at most `maxAgeMs` old unless terminal. Finds the taxpayer's token by itself; one that the
   * service refuses is replaced once.
   *
   * @throws GatewayError NOT_FOUND, TAXPAYER_NOT_AUTHORIZED, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code
   */
  async status(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    maxAgeMs = sharedMs,
    { holder }: CallOptions = {},
  ): Promise<JobView> {
    const { service, broker, places } = this.#options;
    const id = idOf(taxpayerId, jobId);
    const request: ReadRequest<Observation, Credential> = {
      acceptable: (held) => this.#isCurrent(held, maxAgeMs),
      takesFetchedMeanwhile: true,
      prepare: () => broker.credential(taxpayerId, undefined, { holder }),
      fetch: async (first, signal) => {
        const job = await broker.readWithToken(taxpayerId, first, { signal, holder }, (credential) =>
          service.refreshJob(taxpayerId, jobId, credential, signal, { holder }),
        );
        return this.#observationOf(id, job);
      },
      holder,
    };
    const read = () => this.#cache.read(id, request);
    return viewOf(await (places?.run(holder, read) ?? read()));
  }

  #isCurrent(entry: Entry<Observation>, maxAgeMs: number): boolean {
    return isTerminal(entry.value.job) || this.#cache.isYoungerThan(entry, maxAgeMs);
  }

  #observationOf(id: string, job: JobStatus): Observation {
    const before = this.#cache.peek(id)?.value;
    const now = this.#now();
    // Never later than now: a clock that was ahead would keep the polls at their fastest until it is caught up with.
    return { job, unchangedSince: before?.job.status === job.status ? Math.min(before.unchangedSince, now) : now };
  }
}

/** Ids hold no slash (see `identifiers.ts`), so that no two pairs look alike. */
function idOf(taxpayerId: TaxpayerId, jobId: JobId): string {
  return `${taxpayerId}/${jobId}`;
}

/** Of one entry always the same view, so that what is made of it can be kept with it. */
function viewOf(entry: Entry<Observation>): JobView {
  const { job, unchangedSince } = entry.value;
  entry.view ??= { job, observedAt: entry.fetchedAt, unchangedSince } satisfies JobView;
  return entry.view as JobView;
}

const storedObservation = z.object({ job: jobStatus, unchangedSince: z.number() });

const observationCodec: Codec<Observation> = {
  encode: (observation) => observation,
  decode: (stored) => storedObservation.parse(stored),
};
