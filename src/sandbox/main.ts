import { parseArgs } from 'node:util';
import { startSandbox } from './Sandbox.js';

const help = `Runs the sandbox of the taxpayer-authorization service as a process of its own.

  --port <n>             port to listen on; default 0, a free one
  --client-id <text>     default sandbox-client
  --client-secret <text> default sandbox-secret-not-real
  --api-version <text>   the accepted Service-API-Version; default 2024-01-01
  --latency-ms <n>       how long every answer of the API takes; default 0
  --job-duration-ms <n>  how long a job is processing after it is first read; default 15000
  --taxpayers <n>        taxpayers with generated ids, besides the demo ones; default 0
  --http-control         serve the control surface under /__sandbox/
  --no-log               count requests but keep none
  --help                 show this text

Prints one line of JSON with its url when it is ready, and ends on SIGTERM or SIGINT.
`;

await main(process.argv.slice(2));

async function main(args: string[]): Promise<void> {
  try {
    const flags = parsedFlags(args);
    if (flags.help) process.stdout.write(help);
    else await run(flags);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : 'The sandbox could not start'}\n`);
    process.exitCode = 1;
  }
}

async function run(flags: ReturnType<typeof parsedFlags>): Promise<void> {
  const sandbox = await startSandbox({
    clientId: flags['client-id'],
    clientSecret: flags['client-secret'],
    apiVersion: flags['api-version'],
    port: wholeNumber('port', flags.port),
    latencyMs: wholeNumber('latency-ms', flags['latency-ms']),
    jobDurationMs: wholeNumber('job-duration-ms', flags['job-duration-ms']),
    httpControl: flags['http-control'],
    ...(flags['no-log'] && { logCapacity: 0 }),
  });
  const taxpayerIds = sandbox.control.addTaxpayers(wholeNumber('taxpayers', flags.taxpayers));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void sandbox.stop());
  const { url, controlUrl, demo } = sandbox;
  process.stdout.write(`${JSON.stringify({ url, controlUrl, demo, taxpayerIds })}\n`);
}

function parsedFlags(args: string[]) {
  return parseArgs({
    args,
    options: {
      port: { type: 'string', default: '0' },
      'client-id': { type: 'string', default: 'sandbox-client' },
      'client-secret': { type: 'string', default: 'sandbox-secret-not-real' },
      'api-version': { type: 'string', default: '2024-01-01' },
      'latency-ms': { type: 'string', default: '0' },
      'job-duration-ms': { type: 'string', default: '15000' },
      taxpayers: { type: 'string', default: '0' },
      'http-control': { type: 'boolean', default: false },
      'no-log': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new RangeError(`--${flag} must be a whole number, found ${JSON.stringify(text)}`);
  return Number(text);
}
