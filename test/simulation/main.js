// npm run simulate: runs the fleet simulator over many seeds, shows one, or makes it shorter.

import { appendFileSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { bundle } from './bundle.js';
import { failedPlans, failedPlansFile } from './failedPlans.js';

const help = `npm run simulate -- [options]

  --seeds N        runs N seeds (default 2000)
  --minutes N      instead of --seeds: runs seeds, a thousand at a time, until N minutes are over
  --from N         begins with seed N (default: another one each day)
  --seed N         runs seed N and prints what happened as a timeline
  --shrink N       finds the fewest steps with which seed N still breaks the same promise, and prints their timeline
  --failed         runs the plans that have failed before (test/simulation/failedPlans.jsonl); with --seed or --shrink: that
                   of this seed
  --keep N         adds the plan of seed N to those that have failed before: another commit may plan otherwise
  --processes N    works with N threads (default 2)
  --help           prints this

Each seed that fails has a line. The last line is a hash over the traces of all seeds: it is the same for the same seeds and
the same commit. Exit code 0; 1 when a seed failed; 2 when called wrongly.`;

const values = readArguments();
const processes = Number(values.processes ?? 2);

if (values.help) console.log(help);
else if (values.seed !== undefined) await show('show', Number(values.seed));
else if (values.shrink !== undefined) await show('shrink', Number(values.shrink));
else if (values.keep !== undefined) await keep(Number(values.keep));
else if (values.failed) await runFailed();
else await runSeeds();

function readArguments() {
  try {
    const numbers = ['seeds', 'minutes', 'from', 'seed', 'shrink', 'keep', 'processes'];
    const options = Object.fromEntries(numbers.map((name) => [name, { type: 'string' }]));
    const flags = { failed: { type: 'boolean' }, help: { type: 'boolean' } };
    const { values } = parseArgs({ options: { ...options, ...flags } });
    for (const name of numbers) {
      const text = values[name];
      if (text !== undefined && !/^\d{1,9}$/.test(text))
        throw new Error(`--${name} takes a whole number, not "${text}"`);
    }
    return values;
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    process.exit(2);
  }
}

async function runSeeds() {
  const from = Number(values.from ?? Math.floor(Date.now() / 86_400_000) * 10_000);
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const enough = values.minutes === undefined ? 0 : 60 * Number(values.minutes);
  const count = enough > 0 ? 1000 : Number(values.seeds ?? 2000);
  const total = { ran: 0, hashes: 0, failed: 0 };
  do {
    await over({ from: from + total.ran, count }, total, () => {
      const rate = (total.ran / seconds()).toFixed(0);
      if (process.stderr.isTTY) process.stderr.write(`\r${total.ran} seeds, ${rate} a second   `);
    });
  } while (seconds() < enough);
  if (process.stderr.isTTY) process.stderr.write('\n');
  console.log(
    `${total.ran} seeds from ${from} in ${seconds().toFixed(1)} s (${(total.ran / seconds()).toFixed(0)} a second): ${total.failed} failed`,
  );
  console.log(`traces: ${total.hashes.toString(16).padStart(12, '0')}`);
  process.exitCode = total.failed > 0 ? 1 : 0;
}

async function runFailed() {
  const plans = failedPlans();
  const messages = await ask({ do: 'these', plans });
  const failures = messages.filter(({ failed }) => failed !== undefined);
  for (const failure of failures) console.log(lineOf(failure));
  console.log(`${plans.length} plans that have failed before: ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}

/** Runs seeds in all threads, and adds what came of them to `total`. */
async function over({ from, count }, total, onProgress) {
  const file = await bundle();
  const onMessage = (message) => {
    if (message.failed !== undefined) {
      total.failed += 1;
      console.log(lineOf(message));
    }
    total.ran += message.ran ?? 0;
    total.hashes = (total.hashes + (message.hashes ?? 0)) % 2 ** 48;
    onProgress();
  };
  const threads = Array.from({ length: processes }, (_, n) => {
    const share = Math.ceil((count - n) / processes);
    return inThread(file, { do: 'seeds', from: from + n, every: processes, count: share }, onMessage);
  });
  await Promise.all(threads.map(({ ended }) => ended));
  await Promise.all(threads.map(({ worker }) => worker.terminate()));
  rmSync(file);
}

async function keep(seed) {
  if (failedPlans().some((plan) => plan.seed === seed)) return console.log(`The plan of seed ${seed} is kept already`);
  const [{ plan }] = await ask({ do: 'plan', seed });
  appendFileSync(failedPlansFile, `${JSON.stringify(plan)}\n`);
  console.log(`Kept the plan of seed ${seed}: ${plan.steps.length} steps`);
}

async function show(what, seed) {
  const kept = values.failed ? failedPlans().find((plan) => plan.seed === seed) : undefined;
  if (values.failed && !kept) {
    console.error(`No plan of seed ${seed} is kept`);
    process.exit(2);
  }
  const [{ lines, findings, hash, steps, stepsBefore }] = await ask({ do: what, seed, plan: kept });
  console.log(lines.join('\n'));
  for (const { check, at, what } of findings) console.log(`FOUND at ${at.toFixed(3)}: ${check}: ${what}`);
  if (steps !== undefined) console.log(`${steps} of ${stepsBefore} steps`);
  console.log(`trace: ${hash}`);
  process.exitCode = findings.length > 0 ? 1 : 0;
}

/** Runs `work` in a thread of its own; returns its messages. */
async function ask(work) {
  const file = await bundle();
  const messages = [];
  await inThread(file, work, (message) => messages.push(message)).ended;
  rmSync(file);
  return messages;
}

function lineOf({ failed, finding }) {
  return `seed ${failed}: ${finding.check}: ${finding.what}`;
}

function inThread(file, workerData, onMessage) {
  const worker = new Worker(file, { workerData });
  const ended = new Promise((resolve, reject) => {
    worker.on('message', onMessage);
    worker.once('error', reject);
    worker.once('exit', resolve);
  });
  return { worker, ended };
}
