import type { ArmedFault, FaultBook, FaultRule } from './Fault.js';
import type { Counters, LoggedRequest, RequestLog } from './RequestLog.js';
import type { RestApi } from './RestApi.js';
import type { EndpointName } from './routeOf.js';
import type { JobChanges, JobProps, SandboxJob, SandboxState, SandboxTaxpayer, TaxpayerProps } from './SandboxState.js';

export interface SandboxControlOptions {
  readonly state: SandboxState;
  readonly api: RestApi;
  readonly log: RequestLog;
  readonly faults: FaultBook;
  readonly setLatency: (latencyMs: number) => void;
  readonly dropConnections: () => void;
  readonly outage: (isOut: boolean) => Promise<void>;
}

/** Sets the scene for a test and says what the service has seen. Changes hold for the next request received. */
export class SandboxControl {
  readonly #options: SandboxControlOptions;

  constructor(options: SandboxControlOptions) {
    this.#options = options;
  }

  counters(): Counters {
    return this.#options.log.counters();
  }

  tokenCalls(taxpayerId: string): number {
    return this.#options.log.tokenCalls(taxpayerId);
  }

  jobCalls(taxpayerId: string, jobId: string): number {
    return this.#options.log.jobCalls(taxpayerId, jobId);
  }

  /** Requests received, oldest first; of one endpoint when that is given. */
  requests(endpoint?: EndpointName): LoggedRequest[] {
    return this.#options.log.requests(endpoint);
  }

  /** Resolves as soon as the endpoint has been called that often since the start or the last reset. */
  whenCalled(endpoint: EndpointName, times: number): Promise<void> {
    return this.#options.log.whenCalled(endpoint, times);
  }

  /** Starts counters and request log afresh. */
  resetCounters(): void {
    this.#options.log.reset();
  }

  taxpayer(id: string): SandboxTaxpayer | undefined {
    return this.#options.state.taxpayer(id);
  }

  /** What is not given gets a plausible value that is clearly not real. */
  addTaxpayer(props: TaxpayerProps = {}): SandboxTaxpayer {
    return this.#options.state.addTaxpayer(props);
  }

  /** Adds that many alike, each with an id and a token of its own, and gives the ids. */
  addTaxpayers(count: number, props: Omit<TaxpayerProps, 'id' | 'accessToken'> = {}): string[] {
    return Array.from({ length: count }, () => this.#options.state.addTaxpayer(props).id);
  }

  /** Throws `UnknownRecord` when there is no such taxpayer or job; so do the methods below. */
  updateTaxpayer(id: string, changes: Omit<TaxpayerProps, 'id'>): SandboxTaxpayer {
    return this.#options.state.updateTaxpayer(id, changes);
  }

  /** Gives the taxpayer a new access token; the old one is refused from now on. */
  rotateToken(id: string): SandboxTaxpayer {
    return this.#options.state.rotateToken(id);
  }

  rotateAllTokens(): void {
    this.#options.state.rotateAllTokens();
  }

  addJob(props: JobProps): SandboxJob {
    return this.#options.state.addJob(props);
  }

  updateJob(taxpayerId: string, jobId: string, changes: JobChanges): SandboxJob {
    return this.#options.state.updateJob(taxpayerId, jobId, changes);
  }

  /** The job is processing again and its clock starts at the next read. */
  restartJob(taxpayerId: string, jobId: string): SandboxJob {
    return this.#options.state.restartJob(taxpayerId, jobId);
  }

  /** How long every answer of the API takes from now on, in milliseconds. */
  setLatency(latencyMs: number): void {
    this.#options.setLatency(latencyMs);
  }

  /** From now on the old client secret is refused. */
  setClientSecret(clientSecret: string): void {
    this.#options.api.setClientSecret(clientSecret);
  }

  /** Arms a fault and gives the id to disarm it by. Of several that match a request the one armed first happens. */
  arm(rule: FaultRule): number {
    return this.#options.faults.arm(rule);
  }

  disarm(id: number): boolean {
    return this.#options.faults.disarm(id);
  }

  disarmAll(): void {
    this.#options.faults.disarmAll();
  }

  armedFaults(): readonly ArmedFault[] {
    return this.#options.faults.armed();
  }

  /** Sends the answers held by `hold-until-released` at that gate and gives their number. */
  release(gate: string): number {
    return this.#options.faults.release(gate);
  }

  /** Cuts every open connection, idle and busy alike; new ones are accepted. */
  dropConnections(): void {
    this.#options.dropConnections();
  }

  /** true: cuts all connections and refuses new ones. false: listens again on the same port. Resolves when done. */
  outage(isOut: boolean): Promise<void> {
    return this.#options.outage(isOut);
  }
}
