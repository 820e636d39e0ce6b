import { expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { realRuntime } from '../../src/process/Runtime.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { CallGate } from '../../src/upstream/CallGate.js';

it('keeps the longer silence when two calls under way are answered with 429, in either order', async () => {
  for (const asked of [
    [7, undefined],
    [undefined, 7],
  ]) {
    let ms = 0;
    const runtime = { ...realRuntime, now: () => ms, monotonicNow: () => ms };
    const store = new MemoryStore({ runtime });
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('gate-secret') });
    const gates = asked.map(
      () =>
        new CallGate({ store: new SealedStore({ store, sealer, scope: [], runtime }), runtime, onClosed: () => {} }),
    );
    for (const [n, gate] of gates.entries()) await gate.closeForRateLimit('taxpayerToken', 'any', asked[n]);
    ms = 6999;
    for (const gate of gates) {
      await expect(gate.pass('taxpayerToken', 'any')).rejects.toMatchObject({ code: 'UPSTREAM_RATE_LIMITED' });
      await gate.pass('refreshJob', 'any');
    }
    ms = 7000;
    for (const gate of gates) await gate.pass('taxpayerToken', 'any');
  }
});
