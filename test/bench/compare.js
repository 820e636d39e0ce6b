// A scenario over several targets: they are warmed up, then asked in rounds.

import { measure, summary } from './measure.js';

const atOnce = 8;

/** Rounds go over all targets in turn, so that a slow moment of the machine hits each of them. */
export async function compare(scenario, targets, world) {
  const taking = targets.filter(({ name }) => scenario.targets.includes(name));
  const results = new Map(taking.map((target) => [target.name, []]));
  const round = await preparedRounds(scenario, taking, world);
  for (let turn = 0; turn < world.rounds; turn += 1) {
    for (const target of taking) results.get(target.name).push(await round(target));
  }
  await world.service.control('set-latency', { latencyMs: 0 });
  return [...results].map(([name, samples]) => ({ name, ...summary(samples) }));
}

/** Warms the targets up, while the service answers at once. @returns what runs one round on one of them */
export async function preparedRounds(scenario, targets, world) {
  const { seconds, warmUpSeconds, service, quick } = world;
  const [amount, warmUpAmount] = [scenario.amount, scenario.warmUpAmount].map(
    (full) => full && (quick ? full / 4 : full),
  );
  const [warmUp, load] = amount ? [{ amount: warmUpAmount }, { amount }] : [{ seconds: warmUpSeconds }, { seconds }];
  const asked = await scenario.bodies(service, { ...world, amount, warmUpAmount });
  const bodies = asked.map(asLoad);
  const before = (await scenario.before?.(service, asked))?.map(asLoad);
  for (const target of before ? targets : []) {
    await measure(target, { ...world, bodies: before, amount: whole(before.length) });
  }
  for (const target of targets) {
    if (amount) target.asked = 0; // rounds of an amount ask for nothing twice
    await measure(target, { ...world, bodies, ...warmUp });
  }
  await service.control('set-latency', { latencyMs: scenario.latencyMs ?? 0 });
  return (target) => measure(target, { ...world, bodies, ...load });
}

function asLoad({ authorization, ...body }) {
  const text = JSON.stringify(body);
  return authorization === undefined ? text : { body: text, authorization };
}

/** Connections share an amount evenly. */
function whole(amount) {
  return Math.ceil(amount / atOnce) * atOnce;
}
