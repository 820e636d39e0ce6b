import { randomUUID } from 'node:crypto';
import * as z from 'zod';

const text = z.string();

/** Statuses and providers are plain strings, so that tests can also plant unknown values. */
const taxpayer = z.strictObject({
  id: text,
  name: text,
  metadata: z.record(text, z.unknown()),
  providerId: text,
  /** ISO 8601. */
  createdAt: text,
  status: text,
  accessToken: text,
});
export type SandboxTaxpayer = Readonly<z.output<typeof taxpayer>>;
export const newTaxpayer = taxpayer.partial();
export const taxpayerChanges = newTaxpayer.omit({ id: true });
export const taxpayerProps = taxpayerChanges.omit({ accessToken: true });

const job = z.strictObject({
  taxpayerId: text,
  jobId: text,
  name: text,
  status: text,
  /** What a processing job becomes `durationMs` after it is first read; null leaves it processing for good. */
  endsAs: text.nullable(),
  durationMs: z.number().nonnegative(),
});
/** `firstReadAt` in milliseconds since the epoch; null until the status is first read. */
type SandboxJob = Readonly<z.output<typeof job> & { firstReadAt: number | null; completesTaxpayer?: boolean }>;
export const newJob = job.partial().required({ taxpayerId: true });
export const jobChanges = job.partial().omit({ taxpayerId: true, jobId: true });

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

/** A change to something that does not exist. */
export class UnknownRecord extends Error {
  constructor(kind: 'taxpayer' | 'job', id: string) {
    super(`The sandbox has no ${kind} ${id}`);
  }
}

export type SandboxState = ReturnType<typeof sandboxState>;

/** Everything the service remembers. Records are replaced, never changed in place. */
export function sandboxState(now: () => number, jobDurationMs: number) {
  const taxpayers = new Map<string, SandboxTaxpayer>();
  const jobs = new Map<string, SandboxJob>();
  const links = new Map<string, SandboxLink>();
  const putTaxpayer = (taxpayer: SandboxTaxpayer) => put(taxpayers, taxpayer.id, taxpayer);
  const putJob = (job: SandboxJob) => put(jobs, `${job.taxpayerId}/${job.jobId}`, job);
  const putLink = (link: SandboxLink) => put(links, link.id, link);

  /** What is not given gets a plausible value that is clearly not real. */
  const addTaxpayer = (props: z.output<typeof newTaxpayer> = {}) =>
    putTaxpayer({
      id: randomUUID(),
      name: 'Nobody Atall (not real)',
      metadata: {},
      providerId: 'service-sandbox',
      createdAt: new Date(now()).toISOString(),
      status: 'CREATED',
      accessToken: newToken(),
      ...given(props),
    });

  /** Throws {@link UnknownRecord} when there is no such taxpayer or job; so do the functions below. */
  const updateTaxpayer = (id: string, changes: z.output<typeof taxpayerChanges>) =>
    putTaxpayer({ ...found(taxpayers.get(id), 'taxpayer', id), ...given(changes) });

  /** Gives the taxpayer a new access token; the old one is refused from now on. */
  const rotateToken = (id: string) => updateTaxpayer(id, { accessToken: newToken() });

  const addJob = (props: z.output<typeof newJob>) =>
    putJob({
      jobId: randomUUID(),
      name: 'Data refresh (not real)',
      status: 'processing',
      endsAs: 'completed',
      durationMs: jobDurationMs,
      ...given(props),
      taxpayerId: found(taxpayers.get(props.taxpayerId), 'taxpayer', props.taxpayerId).id,
      firstReadAt: null,
    });

  const updateJob = (taxpayerId: string, jobId: string, changes: z.output<typeof jobChanges>) =>
    putJob({ ...found(jobs.get(`${taxpayerId}/${jobId}`), 'job', jobId), ...given(changes) });

  return {
    taxpayer: (id: string) => taxpayers.get(id),
    taxpayers: (): readonly SandboxTaxpayer[] => [...taxpayers.values()],
    addTaxpayer,
    /** Adds that many alike, each with an id and a token of its own, and gives the ids. */
    addTaxpayers: (count: number, props: z.output<typeof taxpayerProps> = {}) =>
      Array.from({ length: count }, () => addTaxpayer(props).id),
    updateTaxpayer,
    rotateToken,
    rotateAllTokens: () => [...taxpayers.keys()].forEach(rotateToken),
    addJob,
    updateJob,
    /** The job is processing again and its clock starts at the next read. */
    restartJob: (taxpayerId: string, jobId: string) =>
      putJob({ ...updateJob(taxpayerId, jobId, { status: 'processing' }), firstReadAt: null }),

    /** The job as a client of the service sees it: the first read of a processing job starts its clock. */
    readJob(taxpayerId: string, jobId: string): SandboxJob | undefined {
      const job = jobs.get(`${taxpayerId}/${jobId}`);
      if (job?.status !== 'processing' || job.endsAs === null) return job;
      if (job.firstReadAt === null) return putJob({ ...job, firstReadAt: now() });
      if (now() - job.firstReadAt < job.durationMs) return job;
      if (job.completesTaxpayer && job.endsAs === 'completed') updateTaxpayer(taxpayerId, { status: 'COMPLETED' });
      return putJob({ ...job, status: job.endsAs });
    },

    link: (id: string) => links.get(id),
    /** Creates the link and the taxpayer who will follow it. */
    addLink(settings: ClientLinkSettings, metadata: Readonly<Record<string, unknown>>): SandboxLink {
      const taxpayer = addTaxpayer({ name: prefilledName(settings), metadata });
      return putLink({ id: randomUUID(), taxpayerId: taxpayer.id, settings });
    },
    startJobFromLink(link: SandboxLink): undefined {
      const job = putJob({ ...addJob({ taxpayerId: link.taxpayerId }), completesTaxpayer: true });
      putLink({ ...link, jobId: job.jobId });
    },
  };
}

function put<T>(records: Map<string, T>, key: string, record: T): T {
  records.set(key, record);
  return record;
}

export function found<T>(record: T | undefined, kind: 'taxpayer' | 'job', id: string): T {
  if (record === undefined) throw new UnknownRecord(kind, id);
  return record;
}

/** The members that are not undefined. */
function given<T extends object>(props: T): { readonly [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => value !== undefined)) as never;
}

function newToken(): string {
  return `sandbox-token-not-real-${randomUUID()}`;
}

function prefilledName({ prefillData }: ClientLinkSettings): string | undefined {
  const { personalInfo, businessInfo } = prefillData ?? {};
  const name = [personalInfo?.['firstName'], personalInfo?.['lastName']].filter(Boolean).join(' ');
  return name || businessInfo?.['name'] || undefined;
}
