import { expect, it } from '@jest/globals';
import { startTestGateway } from '../support/gateway.js';

it('sends one creation after another on one connection', async () => {
  const { query, sandbox, stop } = await startTestGateway();
  try {
    for (let time = 0; time < 3; time += 1) {
      const { errors } = await query('mutation { createClientLink(input: {}) { replayed } }');
      expect(errors).toBeUndefined();
    }
    expect(sandbox.control.counters()).toMatchObject({ createClientLink: 3, connections: 1 });
  } finally {
    await stop();
  }
});
