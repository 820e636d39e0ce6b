import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { issueCertificate } from '../../support/certificate.js';
import { startTestGateway } from '../../support/gateway.js';

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
