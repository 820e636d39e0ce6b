/** Statuses and providers are plain strings, so that tests can also plant values nobody knows. */
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
  /** Milliseconds since the epoch; null until somebody asks for the status. */
  readonly firstReadAt: number | null;
}

export interface SandboxLink {
  readonly id: string;
  readonly taxpayerId: string;
  readonly settings: ClientLinkSettings;
  /** The refresh job last started from the hosted page. */
  readonly jobId: string | undefined;
}

export interface ClientLinkSettings {
  readonly flowType?: string | undefined;
  readonly transcripts?: Readonly<Record<string, readonly string[] | undefined>> | undefined;
  readonly prefillData?: Readonly<Record<string, Readonly<Record<string, string | undefined>> | undefined>> | undefined;
}

type Props<T> = { readonly [Key in keyof T]?: T[Key] | undefined };
export type TaxpayerProps = Props<SandboxTaxpayer>;
export type JobProps = Props<Omit<SandboxJob, 'firstReadAt'>> & { readonly taxpayerId: string };
export type JobChanges = Props<Pick<SandboxJob, 'name' | 'status' | 'endsAs' | 'durationMs'>>;

export interface SandboxStateOptions {
  readonly now: () => number;
  readonly newId: () => string;
  readonly jobDurationMs: number;
}

/**
 * Everything the service remembers. Records are replaced, never changed in place, so an answer made from a record can be
 * kept for as long as the record is current.
 */
export class SandboxState {
  readonly #taxpayers = new Map<string, SandboxTaxpayer>();
  readonly #jobs = new Map<string, SandboxJob>();
  readonly #links = new Map<string, SandboxLink>();
  readonly #options: SandboxStateOptions;

  constructor(options: SandboxStateOptions) {
    this.#options = options;
  }

  taxpayer(id: string): SandboxTaxpayer | undefined {
    return this.#taxpayers.get(id);
  }

  taxpayers(): Iterable<SandboxTaxpayer> {
    return this.#taxpayers.values();
  }

  addTaxpayer(props: TaxpayerProps = {}): SandboxTaxpayer {
    return this.#put({
      id: props.id ?? this.#options.newId(),
      name: props.name ?? 'Nobody Atall (not real)',
      metadata: props.metadata ?? {},
      providerId: props.providerId ?? 'service-sandbox',
      createdAt: props.createdAt ?? new Date(this.#options.now()).toISOString(),
      status: props.status ?? 'CREATED',
      accessToken: props.accessToken ?? this.#newToken(),
    });
  }

  /** Throws {@link UnknownRecord} when there is no such taxpayer; so do the other changes. */
  updateTaxpayer(id: string, changes: TaxpayerProps): SandboxTaxpayer {
    const current = this.#taxpayers.get(id);
    if (!current) throw new UnknownRecord('taxpayer', id);
    return this.#put({
      id,
      name: changes.name ?? current.name,
      metadata: changes.metadata ?? current.metadata,
      providerId: changes.providerId ?? current.providerId,
      createdAt: changes.createdAt ?? current.createdAt,
      status: changes.status ?? current.status,
      accessToken: changes.accessToken ?? current.accessToken,
    });
  }

  /** Gives the taxpayer a new access token; the old one is refused from now on. */
  rotateToken(id: string): SandboxTaxpayer {
    return this.updateTaxpayer(id, { accessToken: this.#newToken() });
  }

  rotateAllTokens(): void {
    for (const id of [...this.#taxpayers.keys()]) this.rotateToken(id);
  }

  addJob(props: JobProps): SandboxJob {
    if (!this.#taxpayers.has(props.taxpayerId)) throw new UnknownRecord('taxpayer', props.taxpayerId);
    const { name = 'Data refresh (not real)', status = 'processing', endsAs = 'completed' } = props;
    return this.#putJob({
      taxpayerId: props.taxpayerId,
      jobId: props.jobId ?? this.#options.newId(),
      name,
      status,
      endsAs,
      durationMs: props.durationMs ?? this.#options.jobDurationMs,
      firstReadAt: null,
    });
  }

  /** The job as a client of the service sees it: the first read of a processing job starts its clock. */
  readJob(taxpayerId: string, jobId: string): SandboxJob | undefined {
    const job = this.#jobs.get(`${taxpayerId}/${jobId}`);
    if (job?.status !== 'processing' || job.endsAs === null) return job;
    const now = this.#options.now();
    if (job.firstReadAt === null) return this.#putJob({ ...job, firstReadAt: now });
    return now - job.firstReadAt < job.durationMs ? job : this.#putJob({ ...job, status: job.endsAs });
  }

  updateJob(taxpayerId: string, jobId: string, changes: JobChanges): SandboxJob {
    const current = this.#jobs.get(`${taxpayerId}/${jobId}`);
    if (!current) throw new UnknownRecord('job', jobId);
    return this.#putJob({
      ...current,
      name: changes.name ?? current.name,
      status: changes.status ?? current.status,
      endsAs: changes.endsAs === undefined ? current.endsAs : changes.endsAs,
      durationMs: changes.durationMs ?? current.durationMs,
    });
  }

  /** The job is processing again and its clock starts at the next read. */
  restartJob(taxpayerId: string, jobId: string): SandboxJob {
    const job = this.updateJob(taxpayerId, jobId, { status: 'processing' });
    return this.#putJob({ ...job, firstReadAt: null });
  }

  link(id: string): SandboxLink | undefined {
    return this.#links.get(id);
  }

  /** Creates the link and the taxpayer who will follow it. */
  addLink(settings: ClientLinkSettings, metadata: Readonly<Record<string, unknown>>): SandboxLink {
    const taxpayer = this.addTaxpayer({ name: prefilledName(settings), metadata });
    return this.#putLink({ id: this.#options.newId(), taxpayerId: taxpayer.id, settings, jobId: undefined });
  }

  startJobFromLink(link: SandboxLink): SandboxJob {
    const job = this.addJob({ taxpayerId: link.taxpayerId });
    this.#putLink({ ...link, jobId: job.jobId });
    return job;
  }

  #put(taxpayer: SandboxTaxpayer): SandboxTaxpayer {
    this.#taxpayers.set(taxpayer.id, taxpayer);
    return taxpayer;
  }

  #putJob(job: SandboxJob): SandboxJob {
    this.#jobs.set(`${job.taxpayerId}/${job.jobId}`, job);
    return job;
  }

  #putLink(link: SandboxLink): SandboxLink {
    this.#links.set(link.id, link);
    return link;
  }

  #newToken(): string {
    return `sandbox-token-not-real-${this.#options.newId()}`;
  }
}

/** A change to something that does not exist. */
export class UnknownRecord extends Error {
  constructor(kind: 'taxpayer' | 'job', id: string) {
    super(`The sandbox has no ${kind} ${id}`);
    this.name = 'UnknownRecord';
  }
}

function prefilledName({ prefillData }: ClientLinkSettings): string | undefined {
  const person = prefillData?.['personalInfo'];
  const name = [person?.['firstName'], person?.['lastName']].filter(Boolean).join(' ');
  return name || prefillData?.['businessInfo']?.['name'] || undefined;
}
