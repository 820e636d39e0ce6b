// What Stryker runs against a mutant: seeds of the fleet simulator, in the process that has loaded all mutants and so within
// milliseconds each; and the tests of the room if no seed notices.

import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commonTokens, declareFactoryPlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
import { determineHitLimitReached } from '@stryker-mutator/api/test-runner';
import { strykerPlugins as jestPlugins } from '@stryker-mutator/jest-runner';
import { failedPlans } from '../simulation/failedPlans.js';
import { simulated } from './rooms.js';

const isSimulated = simulated.includes(process.env.MUTATION_ROOM);
/** After the plans that have failed before. */
const seeds = 150;
/** A mutant that is met this many times as often as without it goes round without end. */
const endlessFactor = 10;
const leastHits = 10_000;
const id = 'seeds of the simulator';
/** In the folder of the mutants: of the processes that run tests, only one makes the first run. */
const firstRun = 'first-run.json';
/** What the mutants in this process look at; those of Jest's tests have another. */
globalThis.__stryker__ ??= {};
const { __stryker__: stryker } = globalThis;

class SeedsThenJest {
  #jest;
  #simulator;
  #plans;

  constructor(jest) {
    this.#jest = jest;
  }

  capabilities() {
    return this.#jest.capabilities();
  }

  async init() {
    await this.#jest.init();
    if (!isSimulated) return;
    // Stryker has changed to the folder of the mutants.
    const { bundle } = await import(pathToFileURL(resolve('test/simulation/bundle.js')).href);
    this.#simulator = await import(pathToFileURL(await bundle(undefined, 'simulator.ts')).href);
    const plans = Array.from({ length: seeds }, (_, n) => this.#simulator.planOf(n + 1));
    this.#plans = [...failedPlans(), ...plans];
  }

  async dryRun(options) {
    const result = await this.#jest.dryRun(options);
    if (result.status !== 'complete') return result;
    const fileOf = Object.fromEntries(result.tests.map((test) => [test.id, test.fileName]));
    if (!isSimulated) {
      writeFileSync(firstRun, JSON.stringify({ fileOf }));
      return result;
    }
    const startedAt = performance.now();
    stryker.currentTestId = id;
    const failed = await this.#firstFailure();
    stryker.currentTestId = undefined;
    if (failed) return { status: 'error', errorMessage: failed };
    const run = { id, name: id, status: 0, timeSpentMs: Math.round(performance.now() - startedAt) };
    const { mutantCoverage: ofTests } = result;
    const hits = stryker.mutantCoverage?.perTest[id] ?? {};
    writeFileSync(firstRun, JSON.stringify({ fileOf, hits }));
    const perTest = { ...ofTests.perTest, [id]: hits };
    return { ...result, tests: [...result.tests, run], mutantCoverage: { static: ofTests.static, perTest } };
  }

  async mutantRun(options) {
    const { activeMutant, testFilter } = options;
    const { fileOf, hits } = JSON.parse(readFileSync(firstRun, 'utf8'));
    if (testFilter.includes(id)) {
      const hitLimit = leastHits + endlessFactor * hits[activeMutant.id];
      Object.assign(stryker, { activeMutant: activeMutant.id, hitLimit, hitCount: 0 });
      const failureMessage = await this.#firstFailure();
      const endless = determineHitLimitReached(stryker.hitCount, hitLimit);
      Object.assign(stryker, { activeMutant: undefined, hitLimit: undefined, hitCount: undefined });
      if (endless) return endless;
      if (failureMessage) return { status: 'killed', failureMessage, killedBy: [id], nrOfTests: 1 };
    }
    const rest = testFilter.filter((test) => test !== id);
    if (rest.length === 0) return { status: 'survived', nrOfTests: 1 };
    // Stryker's Jest would load every file of the room, which takes longer than the tests.
    this.#jest.jestConfig.testMatch = [...new Set(rest.map((test) => fileOf[test]))];
    return this.#jest.mutantRun({ ...options, testFilter: rest });
  }

  /** Runs plans until a promise is broken. */
  async #firstFailure() {
    let stray;
    const onStray = (error) => {
      stray = `rejected, and nobody waits for it: ${error}`;
    };
    process.on('unhandledRejection', onStray);
    try {
      for (const plan of this.#plans) {
        const [finding] = (await this.#simulator.run(plan)).findings;
        if (finding || stray) return stray ?? `seed ${plan.seed}: ${finding.check}: ${finding.what}`;
      }
      return undefined;
    } catch (error) {
      return String(error?.stack ?? error);
    } finally {
      process.off('unhandledRejection', onStray);
    }
  }
}

seedsThenJest.inject = tokens(commonTokens.injector);
function seedsThenJest(injector) {
  const [{ factory }] = jestPlugins;
  return new SeedsThenJest(factory(injector));
}

export { strykerValidationSchema } from '@stryker-mutator/jest-runner';
export const strykerPlugins = [declareFactoryPlugin(PluginKind.TestRunner, 'seedsThenJest', seedsThenJest)];
