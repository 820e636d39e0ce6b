// Runs a scenario over several targets: warms them up, then measures them in rounds.

import { measure, summary } from './measure.js';

const atOnce = 8;

/** Each round measures all targets in turn, so that a slow moment of the machine affects all of them. */
export async function compare(scenario, targets, world) {
  const taking = targets.filter(({ name }) => scenario.targets.includes(name));
  const results = new Map(taking.map((target) => [target.name, []]));
  const round = await preparedRounds(scenario, taking, world);
  for (let turn = 0; turn < world.rounds; turn += 1) {
    for (const target of taking) results.get(target.name).push(await round(target));
  }
  await world.service.control('setLatency', 0);
  return [...results].map(([name, samples]) => ({ name, ...summary(samples) }));
}

/** Warms the targets up, with a service that answers at once. @returns a function that runs one round on a target */
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
    if (amount) target.asked = 0; // with an amount, no request is sent twice
    await measure(target, { ...world, bodies, ...warmUp });
  }
  await service.control('setLatency', scenario.latencyMs ?? 0);
  return (target) => measure(target, { ...world, bodies, ...load });
}

function asLoad({ authorization, ...body }) {
  const text = JSON.stringify(body);
  return authorization === undefined ? text : { body: text, authorization };
}

/** `amount`, rounded up to a multiple of the connections, which share it evenly. */
function whole(amount) {
  return Math.ceil(amount / atOnce) * atOnce;
}
