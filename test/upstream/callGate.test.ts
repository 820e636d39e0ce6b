import { expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { realRuntime } from '../../src/process/Runtime.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { CallGate } from '../../src/upstream/CallGate.js';

type Asked = readonly (number | undefined)[];
const oneByOne = async (gates: readonly CallGate[], asked: Asked) => {
  for (const [n, gate] of gates.entries()) await gate.closeForRateLimit('taxpayerToken', 'any', asked[n]);
};
const atOnce = (gates: readonly CallGate[], asked: Asked) =>
  Promise.all(gates.map((gate, n) => gate.closeForRateLimit('taxpayerToken', 'any', asked[n])));

it.each([
  ['one after the other', oneByOne],
  ['at the same time', atOnce],
])('keeps the longest silence for all processes when several are answered with 429, %s', async (_, close) => {
  const orders: readonly Asked[] = [
    [7, undefined, 6],
    [undefined, 7, 6],
    [6, undefined, 7],
  ];
  for (const asked of orders) {
    let ms = 0;
    const runtime = { ...realRuntime, now: () => ms, monotonicNow: () => ms };
    const store = new MemoryStore({ runtime });
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('gate-secret') });
    const newGate = () =>
      new CallGate({ store: new SealedStore({ store, sealer, scope: [], runtime }), runtime, onClosed: () => {} });
    const told = asked.map(newGate);
    await close(told, asked);
    const gates = [...told, newGate()];
    ms = 6999;
    for (const gate of gates) {
      await expect(gate.pass('taxpayerToken', 'any')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
      await gate.pass('refreshJob', 'any');
    }
    ms = 7000;
    for (const gate of gates) await gate.pass('taxpayerToken', 'any');
  }
});

it('writes the longest silence, and few others, when many calls of a process are answered with 429 at the same time', async () => {
  let ms = 0;
  const runtime = { ...realRuntime, now: () => ms, monotonicNow: () => ms };
  const asked: string[] = [];
  const store = new Proxy(new MemoryStore({ runtime }), {
    get(target, name) {
      const member = target[name as keyof MemoryStore];
      if (typeof member !== 'function') return member;
      asked.push(String(name));
      return (member as () => unknown).bind(target);
    },
  });
  const sealer = new Sealer({ from: 'client-secret', secret: new Secret('gate-secret') });
  const gate = new CallGate({
    store: new SealedStore({ store, sealer, scope: [], runtime }),
    runtime,
    onClosed: () => {},
  });
  const closing = Array.from({ length: 50 }, () => {
    ms += 1;
    return gate.closeForRateLimit('taxpayerToken', 'any', 7);
  });
  await Promise.all(closing);
  expect(asked.filter((name) => name === 'settle').length).toBeLessThanOrEqual(2);
  expect(asked.length).toBeLessThan(150);
  ms = 7049;
  await expect(gate.pass('taxpayerToken', 'any')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
});
