import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { issueCertificate } from '../../support/certificate.js';
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

it('sends nothing to a service whose certificate nobody vouches for', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'self-signed-'));
  const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  issueCertificate('127.0.0.1', { certFile, keyFile });
  let requests = 0;
  const service = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_, response) => {
    requests += 1;
    response.end();
  });
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const { query, logs, stop } = await startTestGateway({ UPSTREAM_BASE_URL: url });
  try {
    const { errors } = await query('{ taxpayerToken(taxpayerId: "x") { status } }');
    expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_UNAVAILABLE' } }]);
    expect(logs.join('')).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
    expect(requests).toBe(0);
  } finally {
    await stop();
    service.close();
    rmSync(directory, { recursive: true });
  }
});
