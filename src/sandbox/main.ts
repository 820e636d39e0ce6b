import { parseArgs } from 'node:util';
import { startSandbox } from './Sandbox.js';

const help = `Runs the sandbox of the taxpayer-authorization service as a process of its own.

  --port <n>             port to listen on; default 0, a free one
  --client-id <text>     default sandbox-client
  --client-secret <text> default sandbox-secret-not-real
  --api-version <text>   the accepted Service-API-Version; default 2024-01-01
  --latency-ms <n>       delay of every answer of the API, in milliseconds; default 0
  --job-duration-ms <n>  how long a job stays processing after it is first read, in milliseconds; default 15000
  --taxpayers <n>        number of taxpayers with generated ids, in addition to the demo ones; default 0
  --http-control         serve the control surface under /__sandbox/
  --no-log               count requests without keeping them
  --help                 show this text

Prints one line of JSON with its url when it is ready, and ends on SIGTERM or SIGINT.
`;
const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;

try {
  const { values } = parseArgs({
    options: {
      port: { ...text, default: '0' },
      'client-id': { ...text, default: 'sandbox-client' },
      'client-secret': { ...text, default: 'sandbox-secret-not-real' },
      'api-version': { ...text, default: '2024-01-01' },
      'latency-ms': { ...text, default: '0' },
      'job-duration-ms': { ...text, default: '15000' },
      taxpayers: { ...text, default: '0' },
      'http-control': flag,
      'no-log': flag,
      help: flag,
    },
  });
  if (values.help) process.stdout.write(help);
  else {
    const taxpayers = wholeNumber('taxpayers', values.taxpayers);
    const sandbox = await startSandbox({
      clientId: values['client-id'],
      clientSecret: values['client-secret'],
      apiVersion: values['api-version'],
      port: wholeNumber('port', values.port),
      latencyMs: wholeNumber('latency-ms', values['latency-ms']),
      jobDurationMs: wholeNumber('job-duration-ms', values['job-duration-ms']),
      httpControl: values['http-control'],
      ...(values['no-log'] && { logCapacity: 0 }),
    });
    const taxpayerIds = sandbox.control.addTaxpayers(taxpayers);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void sandbox.stop());
    const { url, controlUrl, demo } = sandbox;
    process.stdout.write(`${JSON.stringify({ url, controlUrl, demo, taxpayerIds })}\n`);
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : 'The sandbox could not start'}\n`);
  process.exitCode = 1;
}

function wholeNumber(name: string, value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new RangeError(`--${name} must be a whole number, found ${JSON.stringify(value)}`);
}
