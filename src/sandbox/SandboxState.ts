import * as z from 'zod';

/** Statuses and providers are plain strings: a service may have some that no catalogue knows. */
export interface SandboxTaxpayer {
  readonly id: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly providerId: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly status: string;
  readonly accessToken: string;
}

export interface SandboxJob {
  readonly taxpayerId: string;
  readonly jobId: string;
  readonly name: string;
  readonly status: string;
  /** What a processing job becomes `durationMs` after it is first read; null leaves it processing for good. */
  readonly endsAs: string | null;
  readonly durationMs: number;
  /** In milliseconds since the epoch; null until the status is first read. */
  readonly firstReadAt: number | null;
  /** Whether its taxpayer is completed together with it. */
  readonly completesTaxpayer: boolean;
}

const text = z.string();
const texts = (...names: string[]) => z.partialRecord(z.enum(names), text);
const prefillData = z.strictObject({
  personalInfo: texts('firstName', 'lastName', 'ssn'),
  businessInfo: texts('name', 'taxId', 'type', 'phone', 'title'),
  address: texts('street', 'other', 'city', 'state', 'zip'),
});
const transcript = z.enum(['ACTR', 'RECA', 'WAID', 'VENF', 'W2', '1095-A', 'NOTICE']);
/** How the service lets a client set up a link. */
export const clientLinkSettings = z
  .strictObject({
    flowType: text,
    transcripts: z.partialRecord(transcript, z.array(text)),
    prefillData: prefillData.partial(),
  })
  .partial();
type ClientLinkSettings = z.output<typeof clientLinkSettings>;

export interface SandboxLink {
  readonly id: string;
  readonly taxpayerId: string;
  readonly settings: ClientLinkSettings;
  /** The refresh job last started from the hosted page. */
  readonly jobId?: string;
}

const nobody = 'Nobody Atall (not real)';

export type SandboxState = ReturnType<typeof sandboxState>;

/** Everything the service remembers. Records are replaced, never changed in place. */
export function sandboxState(jobDurationMs: number) {
  const taxpayers = new Map<string, SandboxTaxpayer>();
  const jobs = new Map<string, SandboxJob>();
  const links = new Map<string, SandboxLink>();

  /** What is not given gets a plausible value that is clearly not real. */
  const addTaxpayer = (props: Partial<SandboxTaxpayer> = {}) => {
    const id = props.id ?? crypto.randomUUID();
    return put(taxpayers, id, {
      id,
      name: nobody,
      metadata: {},
      providerId: 'service-sandbox',
      createdAt: new Date().toISOString(),
      status: 'CREATED',
      accessToken: `sandbox-token-not-real-${crypto.randomUUID()}`,
      ...props,
    });
  };

  const updateTaxpayer = (id: string, changes: Partial<SandboxTaxpayer>) =>
    put(taxpayers, id, { ...found(taxpayers.get(id)), ...changes });

  const addJob = (props: Partial<SandboxJob> & { readonly taxpayerId: string }) => {
    const jobId = props.jobId ?? crypto.randomUUID();
    return put(jobs, `${props.taxpayerId}/${jobId}`, {
      jobId,
      name: 'Data refresh (not real)',
      status: 'processing',
      endsAs: 'completed',
      durationMs: jobDurationMs,
      firstReadAt: null,
      completesTaxpayer: false,
      ...props,
    });
  };

  const updateJob = (taxpayerId: string, jobId: string, changes: Partial<SandboxJob>) => {
    const key = `${taxpayerId}/${jobId}`;
    return put(jobs, key, { ...found(jobs.get(key)), ...changes });
  };

  return {
    taxpayers,
    addTaxpayer,
    updateTaxpayer,
    addJob,
    updateJob,

    /** The job as a client of the service sees it: the first read of a processing job starts its clock. */
    readJob(taxpayerId: string, jobId: string): SandboxJob | undefined {
      const job = jobs.get(`${taxpayerId}/${jobId}`);
      if (job?.status !== 'processing' || job.endsAs === null) return job;
      if (job.firstReadAt === null) return updateJob(taxpayerId, jobId, { firstReadAt: Date.now() });
      if (Date.now() - job.firstReadAt < job.durationMs) return job;
      if (job.completesTaxpayer && job.endsAs === 'completed') updateTaxpayer(taxpayerId, { status: 'COMPLETED' });
      return updateJob(taxpayerId, jobId, { status: job.endsAs });
    },

    link: (id: string) => links.get(id),
    /** Creates the link and the taxpayer who will follow it. */
    addLink(settings: ClientLinkSettings, metadata: Readonly<Record<string, unknown>>): SandboxLink {
      const { id: taxpayerId } = addTaxpayer({ name: prefilledName(settings), metadata });
      const id = crypto.randomUUID();
      return put(links, id, { id, taxpayerId, settings });
    },
    startJobFromLink(link: SandboxLink): void {
      const { jobId } = addJob({ taxpayerId: link.taxpayerId, completesTaxpayer: true });
      put(links, link.id, { ...link, jobId });
    },
  };
}

function put<T>(records: Map<string, T>, key: string, record: T): T {
  records.set(key, record);
  return record;
}

function found<T>(record: T | undefined): T {
  if (record === undefined) throw new Error('The sandbox has no such record');
  return record;
}

function prefilledName({ prefillData }: ClientLinkSettings): string {
  const { personalInfo, businessInfo } = prefillData ?? {};
  const name = [personalInfo?.['firstName'], personalInfo?.['lastName']].filter(Boolean).join(' ');
  return name || businessInfo?.['name'] || nobody;
}
