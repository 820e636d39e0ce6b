import { AsyncLocalStorage } from 'node:async_hooks';
import { Sealer } from '../../src/cache/Sealer.js';
import { type Config, loadConfig } from '../../src/config/config.js';
import { identifiers, type TaxpayerId } from '../../src/datasources/identifiers.js';
import { startDatasources } from '../../src/datasources/startDatasources.js';
import type { TokenEvent } from '../../src/datasources/TokenBroker.js';
import type { GatewayError } from '../../src/errors/errors.js';
import { startAgents } from '../../src/network/agents.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import type { SandboxTaxpayer } from '../../src/sandbox/state.js';
import { atEnd } from './atEnd.js';
import { environmentFor } from './gateway.js';
import { real, replacePlatform, restorePlatform } from './platform.js';
import { startSandbox } from './sandbox.js';
import { SharedStore } from './stores/SharedStore.js';
import { times } from './times.js';

export type Fleet = Awaited<ReturnType<typeof startFleet>>;

/** One gateway of a fleet: everything between the resolvers and the service. */
export type Member = Fleet['members'][number];

/**
 * Beside these, any setting of the members. By default they have no budget, and deadlines so long that a slow machine does not
 * fail a test.
 */
export interface FleetOptions extends Partial<Omit<Config, 'freshness'>> {
  readonly size?: number;
  /** Overrides of the default rule. */
  readonly freshness?: Partial<Config['freshness']>;
  /** How far the clock of each member is ahead of the fleet's, in milliseconds. Default 0. */
  readonly aheadMs?: readonly number[];
}

interface Clocks {
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly random?: () => number;
}

/** The clocks of the member or the store that is at work. The sandbox and the test have the platform's. */
const clocks = new AsyncLocalStorage<Clocks | undefined>();
beforeAll(() => replacePlatform(() => clocks.getStore()));
afterAll(restorePlatform);

/** Gateways that share a store and a simulated clock, over a real sandbox. */
export async function startFleet({ size = 1, freshness, aheadMs = [], ...settings }: FleetOptions = {}) {
  const sandbox = await startSandbox();
  let clock = Date.now();
  let correctedMs = 0;
  const now = () => clock;
  // Real time passes a thousandth as fast: enough to tell what came first.
  const monotonicNow = () => clock + real.monotonicNow() / 1000;
  const shared = on({ now, monotonicNow }, new SharedStore());
  const defaults = loadConfig(environmentFor(sandbox));
  const config: Config = {
    ...defaults,
    UPSTREAM_TIMEOUT_MS: 10_000,
    UPSTREAM_DEADLINE_MS: 20_000,
    BREAKER_RESET_MS: 50,
    memoryBytes: 10_000_000,
    freshness: { ...defaults.freshness, ...freshness },
    TOKEN_BUDGET_PER_HOUR: 0,
    TOKEN_BUDGET_CALLER_SHARE: 1,
    budgetWatchShare: 1,
    ...settings,
  };

  const members = times(size, (n) => {
    const own: Clocks = {
      now: () => clock + correctedMs + (aheadMs[n] ?? 0),
      monotonicNow,
      random: () => 0,
    };
    const events: TokenEvent[] = [];
    const { broker, jobs, links, stop } = clocks.run(own, () =>
      startDatasources({
        config,
        log: createLogger('silent', { write: () => {} }),
        metrics: Object.assign(new Metrics(), {
          onTokenEvent: (event: TokenEvent) => events.push(event),
        }),
        agents: startAgents(config),
        store: shared,
        sealer: new Sealer(config),
      }),
    );
    return {
      broker: on(own, broker),
      cache: on(own, broker.cache),
      jobs: on(own, jobs),
      links: on(own, links),
      /** The broker's events, in order. */
      events,
      stop,
    };
  });

  atEnd(() => {
    for (const member of members) member.stop();
  });
  const [one, two] = members as [(typeof members)[number], (typeof members)[number]];
  const addTaxpayers = (count: number, props?: Partial<SandboxTaxpayer>) =>
    sandbox.addTaxpayers(count, props).map((id) => identifiers.taxpayerId(id));
  return {
    sandbox,
    members,
    one,
    /** Only there if `size` is more than 1. */
    two,
    ids: identifiers,
    addTaxpayers,
    addTaxpayer: (props?: Partial<SandboxTaxpayer>) => addTaxpayers(1, props)[0] as TaxpayerId,
    /** A job that does not end by itself. */
    addJob: (taxpayerId: TaxpayerId) => identifiers.jobId(sandbox.addJob({ taxpayerId, durationMs: Infinity }).jobId),
    /** Epoch milliseconds, by the clock of the fleet. */
    now,
    /** By which leases and ages are told. */
    monotonicNow,
    /** Lets time pass for every member and the store. */
    advance: (ms: number) => {
      clock += ms;
    },
    /** Sets the wall clocks of all members forward, or back: no time passes. */
    setClocks: (byMs: number) => {
      correctedMs += byMs;
    },
    /** Rotates the client secret, at the service and in every member. */
    rotateSecret: (secret: string) => {
      sandbox.setClientSecret(secret);
      config.UPSTREAM_CLIENT_SECRET.renew(secret);
    },
  };
}

/** `target`, whose methods run on `own` clocks; those of its `watches` do not. */
function on<Target extends object>(own: Clocks, target: Target): Target {
  return new Proxy(target, {
    get: (_, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => clocks.run(own, () => value.apply(target, args));
    },
  });
}

/** The error code of a failed read, or `answered`. */
export async function outcomeOf(read: unknown): Promise<string> {
  try {
    await read;
    return 'answered';
  } catch (error) {
    return (error as GatewayError).code ?? String(error);
  }
}
