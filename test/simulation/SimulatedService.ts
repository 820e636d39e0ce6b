import { times } from '../support/times.js';
import type { Auditor } from './Auditor.js';
import type { NodeRuntime } from './NodeRuntime.js';
import type { Plan, ServiceFault } from './plan.js';
import { beginsAt, type World } from './World.js';

interface Answer {
  readonly status: number;
  readonly json?: unknown;
  /** The content of a valid answer. */
  readonly content?: string;
  /** The version of the token in the answer. */
  readonly token?: number;
  readonly retryAfterSeconds?: number;
}

/** A call to the service, and its answer once it has arrived. Times are virtual, in milliseconds since the simulation began. */
export interface ServiceCall extends Partial<Answer> {
  readonly endpoint: 'token' | 'job' | 'link';
  readonly node: number;
  /** The life of the process that made the call. */
  readonly life: number;
  /** The number of the taxpayer or job. */
  readonly index: number;
  readonly sentAt: number;
  /** The token or client secret sent with the call; each version has its own text. */
  readonly credential: string;
  /** A mark in the link's input, by which checks find its calls; empty for other calls. */
  readonly mark: string;
  arrivedAt?: number;
  /** When the process received the answer; undefined when the process had given up before. */
  deliveredAt?: number;
  endedAt?: number;
}

/** What the gateway gives to node-fetch. */
interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly agent: Agent;
  readonly signal: AbortSignal;
}

interface SimulatedTaxpayer {
  readonly id: string;
  /** How often the token and the record have changed. */
  token: number;
  change: number;
}

export interface SimulatedJob {
  readonly id: string;
  readonly taxpayer: number;
  readonly endsAt: number;
}

const statuses = ['CREATED', 'CONSENT_RECEIVED', 'AUTHORIZED'];

/** The REST service: its taxpayers and jobs, and its faults. */
export class SimulatedService {
  readonly taxpayers: readonly SimulatedTaxpayer[];
  readonly jobs: readonly SimulatedJob[];
  readonly #troubles: { readonly fault: ServiceFault; readonly until: number }[] = [];
  /** The only client secret that the service accepts. */
  secret = 'secret-0';
  #answers = 0;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly auditor: Auditor,
  ) {
    this.taxpayers = times(plan.taxpayers, (n) => ({ id: `taxpayer-${n}`, token: 0, change: 0 }));
    this.jobs = plan.jobs.map(({ taxpayer, endsAt }, n) => ({ id: `job-${n}`, taxpayer, endsAt }));
  }

  taxpayer(n: number): SimulatedTaxpayer {
    return this.taxpayers[n] as SimulatedTaxpayer;
  }

  misbehave(fault: ServiceFault, forMs: number): void {
    this.#troubles.push({ fault, until: this.world.now + forMs });
  }

  /** A replacement for node-fetch, for one process. */
  fetchFor(node: number, life: number, runtime: NodeRuntime) {
    return (url: string, sent: Sent) =>
      new Promise((resolve, reject) =>
        this.#handle(this.#callOf(node, life, url, sent), runtime, sent, resolve, reject),
      );
  }

  #handle(
    call: ServiceCall,
    runtime: NodeRuntime,
    { agent, signal }: Sent,
    resolve: (response: unknown) => void,
    reject: (error: unknown) => void,
  ): void {
    const { world } = this;
    const { node } = call;
    const fault = this.#fault();
    let isOver = false;
    const end = (how: string, settle: () => void) => {
      if (isOver) return;
      isOver = true;
      call.endedAt = world.now;
      signal.removeEventListener('abort', abort);
      world.tell(`node ${node}`, `${call.endpoint} ${call.index} ← ${how}`);
      settle();
    };
    const abort = () => end('given up', () => reject(Object.assign(new Error('aborted'), { name: 'AbortError' })));
    const fail = (code: string) => end(code, () => reject(Object.assign(new Error('network'), { code })));
    signal.addEventListener('abort', abort);
    world.tell(`node ${node}`, `${call.endpoint} ${call.index} → with ${call.credential}`);
    this.auditor.calls.push(call);
    this.auditor.check('sent', call);
    if (fault === 'reset' && world.chance(0.5)) {
      runtime.receive(world.between(0.2, 5), () => fail('ECONNREFUSED'));
      return;
    }
    establish(agent);
    const [there, back] = this.#latency(fault);
    if (fault === 'silent' && world.chance(0.5)) return;
    world.after(there, () => {
      const answer = this.#answer(call, fault);
      Object.assign(call, answer, { arrivedAt: world.now });
      world.tell('service', `${call.endpoint} ${call.index} of node ${node}: ${answer.status} ${answer.content ?? ''}`);
      this.auditor.check('arrived', call);
      if (fault === 'silent') return false;
      if (fault === 'reset') runtime.receive(back, () => fail('ECONNRESET'));
      else {
        runtime.receive(back, () => {
          if (!isOver) call.deliveredAt = world.now;
          end(String(answer.status), () => resolve(responseOf(answer)));
        });
      }
      return false;
    });
  }

  #callOf(node: number, life: number, url: string, { headers, body }: Sent): ServiceCall {
    const [, kind, first, second, third] = new URL(url).pathname.split('/');
    const bearer = (headers['Authorization'] ?? '').replace('Bearer ', '');
    const asClient = () => Buffer.from(bearer, 'base64').toString().split(':')[1] ?? '';
    const common = { node, life, sentAt: this.world.now, mark: '' };
    if (kind === 'auth') return { ...common, endpoint: 'token', index: indexOf(second), credential: asClient() };
    if (kind === 'client-links') {
      const mark = (JSON.parse(body ?? '{}') as { metadata: { mark: string } }).metadata.mark;
      return { ...common, endpoint: 'link', index: 0, credential: asClient(), mark };
    }
    if (kind !== 'tax-payer' || first === undefined) throw new Error(`No such endpoint: ${url}`);
    return { ...common, endpoint: 'job', index: indexOf(third), credential: bearer };
  }

  #fault(): ServiceFault | undefined {
    const { now } = this.world;
    return this.#troubles.findLast(({ until }) => now < until)?.fault;
  }

  #latency(fault: ServiceFault | undefined): readonly [number, number] {
    const { world, plan } = this;
    const isQuiet = world.now > plan.quietFrom + 5000;
    const slowest = fault === 'slow' ? 12_000 : isQuiet ? 200 : plan.slowestMs;
    return [world.between(0.5, slowest / 2), world.between(0.5, slowest / 2)];
  }

  #answer(call: ServiceCall, fault: ServiceFault | undefined): Answer {
    if (fault === '5xx') return { status: this.world.chance(0.5) ? 503 : 500 };
    if (fault === '429') return this.world.chance(0.5) ? { status: 429, retryAfterSeconds: 7 } : { status: 429 };
    if (fault === '401' && call.endpoint !== 'job') return { status: 401 };
    if (call.endpoint !== 'job' && call.credential !== this.secret) return { status: 401 };
    if (fault === 'invalid') return { status: call.endpoint === 'link' ? 201 : 200, json: { nothing: true } };
    if (call.endpoint === 'link') return this.#link(call);
    return call.endpoint === 'token' ? this.#record(call, fault) : this.#job(call, fault);
  }

  #link({ mark }: ServiceCall): Answer {
    const id = `link-${this.#answers++} ${mark}`;
    return { status: 201, json: { id, url: 'https://service.invalid/link' }, content: id };
  }

  #record({ index }: ServiceCall, fault: ServiceFault | undefined): Answer {
    const taxpayer = this.taxpayers[index];
    if (!taxpayer) return { status: 404 };
    const { id, token, change } = taxpayer;
    const name = `${id} changed ${change} times`;
    const answer = this.#answers++;
    const json = {
      access_token: tokenOf(index, token),
      taxpayer_id: fault === 'foreign' ? 'taxpayer-of-somebody-else' : id,
      provider_id: 'provider',
      name,
      metadata: { answer },
      created_at: new Date(beginsAt - 86_400_000).toISOString(),
      status: statuses[change % statuses.length],
    };
    return fault === 'foreign' ? { status: 200, json } : { status: 200, json, content: contentOf(name, answer), token };
  }

  #job({ index, credential }: ServiceCall, fault: ServiceFault | undefined): Answer {
    const job = this.jobs[index];
    if (!job) return { status: 404 };
    const owner = this.taxpayer(job.taxpayer);
    if (credential !== tokenOf(job.taxpayer, owner.token)) return { status: 401 };
    const status = this.world.now < job.endsAt ? 'processing' : 'completed';
    const name = `answer ${this.#answers++}`;
    const json = { status, jobId: fault === 'foreign' ? 'another' : job.id, taxpayerId: owner.id, name };
    return fault === 'foreign' ? { status: 200, json } : { status: 200, json, content: `${status}, ${name}` };
  }
}

/** The content of an answer, different for every answer. */
export const contentOf = (name: unknown, answer: unknown) => `${name}, answer ${answer}`;
export const tokenOf = (taxpayer: number, version: number) => `token-${taxpayer}-${version}`;
const indexOf = (id = '') => Number(/\d+$/.exec(id)?.[0]);

type Agent = { addRequest?: (request: unknown) => void };

/** For a call that must not be retried, tells its agent that the connection is established. */
function establish(agent: Agent) {
  const isEnough = new Error('No real connection is made');
  const once = (event: string, use: (socket: unknown) => void) => {
    if (event === 'socket') use({ connecting: false });
    throw isEnough;
  };
  if (!Object.hasOwn(agent, 'addRequest')) return;
  try {
    agent.addRequest?.({ once });
  } catch (error) {
    if (error !== isEnough) throw error;
  }
}

/** The parts of a node-fetch response that the gateway reads. */
function responseOf({ status, json, retryAfterSeconds }: Answer) {
  const headers = { has: () => false, get: () => (retryAfterSeconds === undefined ? null : String(retryAfterSeconds)) };
  const arrayBuffer = async () => Buffer.from(json === undefined ? '' : JSON.stringify(json));
  return { status, ok: status < 300, headers, arrayBuffer };
}
