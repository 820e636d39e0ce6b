import { expect, it } from '@jest/globals';
import { startTestGateway } from '../../support/gateway.js';

it('reads on one connection, and sends each creation on one of its own, which is then closed', async () => {
  const { query, sandbox, stop } = await startTestGateway();
  try {
    for (const id of sandbox.control.addTaxpayers(3)) {
      expect((await query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`)).errors).toBeUndefined();
      expect((await query('mutation { createClientLink(input: {}) { replayed } }')).errors).toBeUndefined();
    }
    expect(sandbox.control.counters()).toMatchObject({ createClientLink: 3, taxpayerToken: 3, connections: 4 });
  } finally {
    await stop();
  }
});
