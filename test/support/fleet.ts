import { Sealer } from '../../src/cache/sealing.js';
import { type Config, loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import type { ClientLinks } from '../../src/datasources/ClientLinks.js';
import type { FreshnessRule } from '../../src/datasources/freshness.js';
import { identifierReader } from '../../src/datasources/identifiers.js';
import type { RefreshJobs } from '../../src/datasources/RefreshJobs.js';
import type { recordWatcher } from '../../src/datasources/recordWatcher.js';
import type { TokenBroker, TokenEvent } from '../../src/datasources/TokenBroker.js';
import type { GatewayError } from '../../src/errors/errors.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { realRuntime } from '../../src/process/Runtime.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/Sandbox.js';
import { wireServices } from '../../src/services.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import type { Store } from '../../src/stores/Store.js';
import { environmentFor } from './gateway.js';

/** One gateway's share of a fleet: everything between the resolvers and the service. */
export interface Member {
  readonly broker: TokenBroker;
  readonly jobs: RefreshJobs;
  readonly links: ClientLinks;
  readonly recordWatches: ReturnType<typeof recordWatcher>;
  /** What the broker did besides answering, in order. */
  readonly events: TokenEvent[];
  /** How its creations of links ended, in order. */
  readonly linkOutcomes: string[];
  readonly budgetLeft: number[];
}

export interface Fleet {
  readonly sandbox: Sandbox;
  readonly members: readonly Member[];
  readonly ids: ReturnType<typeof identifierReader>;
  /** Epoch milliseconds, by the clock of the fleet. */
  now(): number;
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
  /** What differs from the default rule. */
  readonly freshness?: Partial<FreshnessRule>;
  /** Records that the memory of one member holds. */
  readonly maxEntries?: number;
  readonly budgetPerHour?: number;
  readonly budgetCallerShare?: number;
  readonly budgetWatchShare?: number;
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
  freshness,
  maxEntries = 1000,
  budgetPerHour = 0,
  budgetCallerShare = 1,
  budgetWatchShare = 1,
  breakerResetMs = 50,
  aheadMs = [],
  store,
  connect = (shared) => shared,
}: FleetOptions = {}): Promise<Fleet> {
  const sandbox = await startSandbox({ clientId: 'fleet', clientSecret: 'fleet-secret' });
  let clock = Math.floor(Date.now() / hourMs) * hourMs; // the budget is counted by the hour
  const shared = store ?? new MemoryStore({ runtime: { ...realRuntime, monotonicNow: () => clock } });
  const credentials = { clientId: 'fleet', clientSecret: new Secret('fleet-secret') };
  const defaults = loadConfig(environmentFor(sandbox));
  const config: Config = {
    ...defaults,
    service: { ...defaults.service, timeoutMs: callMs / 2, deadlineMs: callMs, breakerResetMs },
    cache: { ...defaults.cache, maxEntries },
    tokens: {
      freshness: { ...defaults.tokens.freshness, ...freshness },
      budgetPerHour,
      budgetCallerShare,
      budgetWatchShare,
    },
  };

  const wired = Array.from({ length: size }, (_, n) => {
    const now = () => clock + (aheadMs[n] ?? 0);
    const events: TokenEvent[] = [];
    const linkOutcomes: string[] = [];
    const budgetLeft: number[] = [];
    const { broker, jobs, links, recordWatches, stop } = wireServices({
      config,
      log: createLogger('silent', { write: () => {} }),
      metrics: Object.assign(new Metrics(), {
        onTokenEvent: (event: TokenEvent) => events.push(event),
        onLink: (outcome: string) => linkOutcomes.push(outcome),
        onBudget: (left: number) => budgetLeft.push(left),
      }),
      store: connect(shared),
      sealer: new Sealer({ from: 'client-secret', secret: new Secret('fleet-secret') }),
      baseUrl: sandbox.url,
      credentials: () => credentials,
      runtime: { ...realRuntime, now, monotonicNow: () => performance.now() + now(), random: () => 0 },
    });
    return { broker, jobs, links, recordWatches, events, linkOutcomes, budgetLeft, stop };
  });

  return {
    sandbox,
    members: wired,
    ids: identifierReader(256),
    now: () => clock,
    advance: (ms) => {
      clock += ms;
    },
    rotateSecret: (secret) => {
      sandbox.control.setClientSecret(secret);
      credentials.clientSecret = new Secret(secret);
    },
    stop: async () => {
      for (const member of wired) member.stop();
      await shared.close();
      await sandbox.stop();
    },
  };
}

/** The `once` of an operation that asks for nothing twice, and the names it was asked for. */
export function notedOnce() {
  const names: string[] = [];
  const once = <T>(name: string, start: () => Promise<T>) => {
    names.push(name);
    return start();
  };
  return { names, once };
}

/** The code a read fails with, or `answered`. */
export async function outcomeOf(read: unknown): Promise<string> {
  try {
    await read;
    return 'answered';
  } catch (error) {
    return (error as GatewayError).code ?? String(error);
  }
}
