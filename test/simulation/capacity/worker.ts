import { parentPort, workerData } from 'node:worker_threads';
import type { Window } from './Counts.js';
import { windowMs } from './Counts.js';
import { day, type Load, LoadedFleet } from './LoadedFleet.js';

const minute = 60_000;

/** The event at the beginning of a phase. */
export type Event = 'none' | 'store-away' | 'store-emptied' | 'deploy';

/** A part of the run with a row in the report. Times are in minutes since the load began. */
export interface Phase {
  readonly title: string;
  readonly event: Event;
  readonly from: number;
  readonly until: number;
}

/** What was found in a phase. */
export interface PhaseFound extends Phase {
  readonly windows: readonly Window[];
  readonly failures: readonly (readonly [string, number])[];
  /** The number of operations of each kind that reached the store. */
  readonly operations: readonly (readonly [string, number])[];
  /** How long after the event the last process used the store again, in milliseconds; undefined when none ran without it. */
  readonly aloneMs: number | undefined;
}

const { load, phases, seed } = workerData as { load: Load; phases: readonly Phase[]; seed: number };
const tell = (message: object) => parentPort?.postMessage(message);

const end = day + Math.max(...phases.map(({ until }) => until)) * minute;
const fleet = new LoadedFleet(load, end, seed);
const { world, counts } = fleet;
await fleet.prepare();
tell({ size: fleet.storeSize() });
for (const phase of phases) {
  await runTo(day + phase.from * minute);
  counts.failures.clear();
  counts.operations.clear();
  let aloneMs: number | undefined;
  begin(phase.event);
  await runTo(day + phase.until * minute, () => {
    if (fleet.alone > 0) aloneMs = world.now - day - phase.from * minute;
  });
  counts.finish();
  const windows = counts.windows.slice((phase.from * minute) / windowMs, (phase.until * minute) / windowMs);
  const [failures, operations] = [[...counts.failures], [...counts.operations]];
  tell({ found: { ...phase, windows, failures, operations, aloneMs } satisfies PhaseFound });
}

function begin(event: Event): void {
  if (event === 'store-away') fleet.cutStore(minute);
  if (event === 'store-emptied') fleet.store.empty();
  if (event === 'deploy') fleet.deploy(5 * minute);
}

async function runTo(time: number, everySecond = () => {}): Promise<void> {
  while (world.now < time) {
    await world.time.runUntil(Math.min(time, world.now + 1000));
    everySecond();
    tell({ at: world.now - day });
  }
}
