import * as z from 'zod';
import { ageMsOf, type Entry, isYoungerThan } from '../cache/Entry.js';
import { LeasedCache } from '../cache/LeasedCache.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { ReadCall, ReadingOptions } from './TaxpayerService.js';
import type { TokenBroker } from './TokenBroker.js';
import { Watcher } from './Watcher.js';
import { type JobStatus, jobStatus } from './wire.js';

/** A job's status, and for how long it had been the same when it was read, in milliseconds. */
const storedObservation = z.object({ job: jobStatus, unchangedForMs: z.number() });
type Observation = z.output<typeof storedObservation>;

/** An observation, and when it was read. Memory always gives the same object, so that `Vocabulary` translates it once. */
export type JobView = Entry<Observation>;

interface RefreshJobsOptions extends ReadingOptions {
  readonly broker: TokenBroker;
}

/** How long a status that can still change is answered from the cache, in milliseconds. */
export const statusFreshMs = 1000;
/** How long a stored status that can still change counts, in milliseconds. The next poll needs its `unchangedForMs`. */
const processingTtlMs = 3_600_000;

/** Whether the job's status is final (interface, 3.2). A status that we do not know counts as one that can still change. */
export function isFinalJob(job: JobStatus): boolean {
  return job.status === 'completed' || job.status === 'failed';
}

/** Statuses of refresh jobs, read with the taxpayer's token and shared like the tokens themselves. */
export class RefreshJobs {
  readonly cache: LeasedCache<Observation>;
  /** Watches jobs by their {@link jobKey}. While a status stays the same, each poll interval is 1.5 times the last. */
  readonly watches: Watcher<JobView>;

  constructor(private readonly options: RefreshJobsOptions) {
    const { keepMs, JOB_POLL_MIN_MS, JOB_POLL_MAX_MS } = options;
    this.cache = new LeasedCache({
      ...options,
      kind: 'job',
      workMs: 2 * options.workMs, // the taxpayer's token may have to be read first
      codec: { encode: (observation) => observation, decode: storedObservation.parse },
      ttlMs: ({ job }) => (isFinalJob(job) ? keepMs : processingTtlMs),
      idsOf,
      onKept: (id, entry) => {
        if (this.#isFresh(entry, statusFreshMs)) this.watches.offer(id, entry);
      },
    });
    this.watches = new Watcher<JobView>(
      {
        kind: 'job',
        // Any status read after the known one will do: another process may have polled in this interval.
        read: (id, knownAt, call) => this.status(...idsOf(id), call, knownAt && performance.now() - knownAt),
        idsOf,
        known: (id) => this.cache.inMemory(id),
        newsOf: ({ value }) => value.job.status,
        isFinal: ({ value }) => isFinalJob(value.job),
        intervalMs: ({ value: { unchangedForMs } }) =>
          Math.min(JOB_POLL_MAX_MS, Math.max(JOB_POLL_MIN_MS, unchangedForMs / 2)) * (0.9 + Math.random() / 5),
        retryMs: { first: JOB_POLL_MIN_MS, longest: JOB_POLL_MAX_MS },
      },
      options,
    );
  }

  /**
   * The status of a job, at most `maxAgeMs` old unless final; synchronously when memory has it. Gets the taxpayer's token
   * itself, and replaces a refused one by at most one fetch.
   *
   * @throws GatewayError NOT_FOUND, TAXPAYER_NOT_AUTHORIZED, TOKEN_BUDGET_EXHAUSTED, RATE_LIMITED or an `UPSTREAM_` code
   */
  status(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    call: ReadCall = {},
    maxAgeMs = statusFreshMs,
  ): JobView | Promise<JobView> {
    const id = jobKey(taxpayerId, jobId);
    const acceptable = (entry: JobView) => this.#isFresh(entry, maxAgeMs);
    const held = this.cache.held(id, acceptable);
    if (held !== undefined) return held;
    const { service, broker } = this.options;
    const { holder, trail } = call;
    const fetch = async (endsAt: number) => {
      const during = { holder, trail, endsAt }; // not `isWatch`: a token that a watched job needs counts for the caller alone
      const job = await broker.readWithToken(taxpayerId, during, (token) =>
        service.refreshJob(taxpayerId, jobId, token, during),
      );
      const before = this.cache.inMemory(id);
      if (before?.value.job.status !== job.status) return { job, unchangedForMs: 0 };
      return { job, unchangedForMs: before.value.unchangedForMs + ageMsOf(before) };
    };
    const read = () => this.cache.read(id, { holder, acceptable, fetch });
    return call.once ? call.once(`job ${id}`, read) : read();
  }

  #isFresh(entry: JobView, maxAgeMs: number): boolean {
    return isFinalJob(entry.value.job) || isYoungerThan(entry, maxAgeMs);
  }
}

/** Names a job in cache and watches. Ids hold no slash (see `identifiers.ts`), so that no two pairs look alike. */
export const jobKey = (taxpayerId: TaxpayerId, jobId: JobId) => `${taxpayerId}/${jobId}`;
const idsOf = (id: string) => id.split('/') as [TaxpayerId, JobId];
