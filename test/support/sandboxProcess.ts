// The sandbox of the tests as a process of its own, for benchmarks: its only argument has the options as JSON. Prints one line of
// JSON when it is ready. `POST <controlUrl>/<method>` calls a method of its control with the arguments in the JSON body.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { startSandbox } from './sandbox.js';

const { taxpayers = 0, latencyMs = 0, ...options } = JSON.parse(process.argv[2] ?? '{}');
const { url, control } = await startSandbox({ ...options, keepsRequests: false });
control.setLatency(latencyMs);
const taxpayerIds = control.addTaxpayers(taxpayers);
const methods = control as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
const server = createServer(async (request, response) => {
  try {
    const args = (await json(request)) as unknown[];
    response.end(JSON.stringify((await methods[request.url?.slice(1) ?? '']?.(...args)) ?? null));
  } catch (error) {
    response.writeHead(400).end(String(error));
  }
});
await once(server.listen(0, '127.0.0.1'), 'listening');
const controlUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
process.stdout.write(`${JSON.stringify({ url, controlUrl, taxpayerIds })}\n`);
