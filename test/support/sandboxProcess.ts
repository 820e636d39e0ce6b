// The sandbox of the tests as a process of its own, for benchmarks: its only argument has the options as JSON. Prints one line of
// JSON when it is ready. `POST <controlUrl>/<method>` calls a method of it with the arguments in the JSON body.

import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { startSandbox } from './sandbox.js';
import { serve } from './serve.js';

const { taxpayers = 0, latencyMs = 0, ...options } = JSON.parse(process.argv[2] ?? '{}');
const sandbox = await startSandbox({ ...options, keepsRequests: false });
sandbox.setLatency(latencyMs);
const taxpayerIds = sandbox.addTaxpayers(taxpayers);
const methods = sandbox as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
const server = createServer(async (request, response) => {
  try {
    const args = (await json(request)) as unknown[];
    response.end(JSON.stringify((await methods[request.url?.slice(1) ?? '']?.(...args)) ?? null));
  } catch (error) {
    response.writeHead(400).end(String(error));
  }
});
const controlUrl = await serve(server);
process.stdout.write(`${JSON.stringify({ url: sandbox.url, controlUrl, taxpayerIds })}\n`);
