import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { MemoryStore } from '../../src/cache/stores/MemoryStore.js';
import type { Store } from '../../src/cache/stores/Store.js';
import { Secret } from '../../src/config/secret.js';
import { ClientLinks } from '../../src/datasources/ClientLinks.js';
import { identifierReader } from '../../src/datasources/identifiers.js';
import { RefreshJobs } from '../../src/datasources/RefreshJobs.js';
import { TaxpayerService } from '../../src/datasources/TaxpayerService.js';
import { TokenBroker, type TokenEvent } from '../../src/datasources/TokenBroker.js';
import type { GatewayError } from '../../src/errors/errors.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/Sandbox.js';
import { CallGate } from '../../src/upstream/CallGate.js';
import { ResilientFetch } from '../../src/upstream/ResilientFetch.js';

/** One gateway's share of a fleet: everything between the resolvers and the service. */
export interface Member {
  readonly broker: TokenBroker;
  readonly jobs: RefreshJobs;
  readonly links: ClientLinks;
  /** What the broker did besides answering, in order. */
  readonly events: TokenEvent[];
  readonly budgetLeft: number[];
}

export interface Fleet {
  readonly sandbox: Sandbox;
  readonly members: readonly Member[];
  readonly ids: ReturnType<typeof identifierReader>;
  /** Moves the clock that every member and the store read. */
  advance(ms: number): void;
  /** The service's client secret was rotated, and the gateways know. */
  rotateSecret(secret: string): void;
  stop(): Promise<void>;
}

export interface FleetOptions {
  readonly size?: number;
  /** Time for one call with its tries, in milliseconds; long, so that a busy machine does not decide a test. */
  readonly callMs?: number;
  readonly freshMs?: number;
  readonly budgetPerHour?: number;
  readonly budgetCallerShare?: number;
  readonly breakerResetMs?: number;
  /** How far the clock of each member is ahead of the fleet's, in milliseconds. Default 0. */
  readonly aheadMs?: readonly number[];
  /** The store all members share; a memory store on the fleet's clock unless given. */
  readonly store?: Store;
  /** How each member reaches that store; directly unless given. */
  readonly connect?: (shared: Store) => Store;
}

const hourMs = 3_600_000;

/** Brokers that share a store, on a clock of their own, over a real sandbox. */
export async function startFleet({
  size = 1,
  callMs = 20_000,
  freshMs = 900_000,
  budgetPerHour = 0,
  budgetCallerShare = 1,
  breakerResetMs = 50,
  aheadMs = [],
  store,
  connect = (shared) => shared,
}: FleetOptions = {}): Promise<Fleet> {
  const sandbox = await startSandbox({ clientId: 'fleet', clientSecret: 'fleet-secret' });
  let clock = Math.floor(Date.now() / hourMs) * hourMs; // the budget is counted by the hour
  const shared = store ?? new MemoryStore({ now: () => clock });
  const credentials = { clientId: 'fleet', clientSecret: new Secret('fleet-secret') };
  const https: ResilientFetch[] = [];

  const members = Array.from({ length: size }, (_, n): Member => {
    const now = () => clock + (aheadMs[n] ?? 0);
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('fleet-secret') });
    const sealed = new SealedStore({
      store: connect(shared),
      sealer,
      scope: [sandbox.url, 'fleet', '2024-01-01'],
      now,
    });
    const http = new ResilientFetch({
      timeoutMs: callMs / 2,
      deadlineMs: callMs,
      breakerResetMs,
      maxResponseBytes: 100_000,
      random: () => 0,
    });
    https.push(http);
    const service = new TaxpayerService({
      baseUrl: sandbox.url,
      apiVersion: '2024-01-01',
      credentials: () => credentials,
      http,
      gate: new CallGate({ store: sealed, now }),
      maxDepth: 20,
      monotonicNow: now,
    });
    const events: TokenEvent[] = [];
    const budgetLeft: number[] = [];
    const cache = { maxEntries: 1000, workMs: callMs + 1000 };
    const broker = new TokenBroker({
      service,
      store: sealed,
      freshMs,
      budgetPerHour,
      budgetCallerShare,
      cache,
      now,
      onEvent: (event) => events.push(event),
      onBudget: (left) => budgetLeft.push(left),
    });
    const links = new ClientLinks({
      service,
      store: sealed,
      workMs: callMs + 1000,
      now,
    });
    return { broker, jobs: new RefreshJobs({ service, broker, store: sealed, cache, now }), links, events, budgetLeft };
  });

  return {
    sandbox,
    members,
    ids: identifierReader(256),
    advance: (ms) => {
      clock += ms;
    },
    rotateSecret: (secret) => {
      sandbox.control.setClientSecret(secret);
      credentials.clientSecret = new Secret(secret);
    },
    stop: async () => {
      for (const http of https) http.stop();
      await shared.close();
      await sandbox.stop();
    },
  };
}

/** The code a read fails with, or `answered`. */
export async function outcomeOf(read: Promise<unknown>): Promise<string> {
  return read.then(
    () => 'answered',
    (error: GatewayError) => error.code ?? String(error),
  );
}
