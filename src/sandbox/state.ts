import type { Answer } from './answers.js';

/** Statuses and providers are plain strings: a service may have some that no catalogue knows. */
export type SandboxTaxpayer = ReturnType<typeof newTaxpayer>;
export type SandboxJob = ReturnType<typeof newJob> & { taxpayerId: string };

export type SandboxState = ReturnType<typeof sandboxState>;

/** Everything the service remembers. */
export function sandboxState() {
  const taxpayers = new Map<string, SandboxTaxpayer>();
  const jobs = new Map<string, SandboxJob>();

  return {
    taxpayers,
    /** By `taxpayerId/jobId`. */
    jobs,
    /** The taxpayer of each client link, by the id of the link. */
    links: new Map<string, SandboxTaxpayer>(),

    /** What is not given gets a plausible value that is clearly not real. */
    addTaxpayer(props: Partial<SandboxTaxpayer> = {}): SandboxTaxpayer {
      const taxpayer = { ...newTaxpayer(), ...props };
      taxpayers.set(taxpayer.id, taxpayer);
      return taxpayer;
    },

    addJob(props: Partial<SandboxJob> & Pick<SandboxJob, 'taxpayerId'>): SandboxJob {
      const job = { ...newJob(), ...props };
      jobs.set(`${job.taxpayerId}/${job.jobId}`, job);
      return job;
    },

    /** The job as a client of the service sees it: the first read of a processing job starts its clock. */
    readJob(taxpayerId: string, jobId: string): SandboxJob | undefined {
      const job = jobs.get(`${taxpayerId}/${jobId}`);
      if (job?.status !== 'processing') return job;
      job.completesAt ??= Date.now() + job.durationMs;
      if (Date.now() < job.completesAt) return job;
      job.status = 'completed';
      const taxpayer = taxpayers.get(taxpayerId);
      if (taxpayer?.jobId === jobId) taxpayer.status = 'COMPLETED';
      return job;
    },
  };
}

function newTaxpayer() {
  return {
    id: crypto.randomUUID() as string,
    name: 'Nobody Atall (not real)',
    metadata: {} as Readonly<Record<string, unknown>>,
    providerId: 'service-sandbox',
    createdAt: new Date().toISOString(),
    status: 'CREATED',
    accessToken: `sandbox-token-not-real-${crypto.randomUUID()}`,
    /** The refresh job last started from the hosted page; it completes the taxpayer, too. */
    jobId: undefined as string | undefined,
    /** What calls about this taxpayer get in place of the right answer, by endpoint. */
    failures: {} as { readonly [Endpoint in 'taxpayerToken' | 'refreshJob']?: Answer },
  };
}

function newJob() {
  return {
    jobId: crypto.randomUUID() as string,
    name: 'Data refresh (not real)',
    status: 'processing',
    /** How long after its first read a processing job is completed, in milliseconds. */
    durationMs: 15_000,
    /** In milliseconds since the epoch; undefined until the status is first read. */
    completesAt: undefined as number | undefined,
  };
}
