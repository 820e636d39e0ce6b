import { parseArgs } from 'node:util';
import { startSandbox } from './Sandbox.js';

const help = `Runs the sandbox of the taxpayer-authorization service as a process of its own.

  --port <n>             port to listen on; default 0, a free one
  --client-id <text>     default sandbox-client
  --client-secret <text> default sandbox-secret-not-real
  --api-version <text>   the accepted Service-API-Version; default 2024-01-01
  --job-duration-ms <n>  how long a job stays processing after it is first read, in milliseconds; default 15000
  --help                 show this text

Prints one line of JSON with its url when it is ready, and ends on SIGTERM or SIGINT.
`;
const text = { type: 'string' } as const;

try {
  const { values } = parseArgs({
    options: {
      port: { ...text, default: '0' },
      'client-id': { ...text, default: 'sandbox-client' },
      'client-secret': { ...text, default: 'sandbox-secret-not-real' },
      'api-version': { ...text, default: '2024-01-01' },
      'job-duration-ms': { ...text, default: '15000' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) process.stdout.write(help);
  else {
    const sandbox = await startSandbox({
      clientId: values['client-id'],
      clientSecret: values['client-secret'],
      apiVersion: values['api-version'],
      port: wholeNumber('port', values.port),
      jobDurationMs: wholeNumber('job-duration-ms', values['job-duration-ms']),
    });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void sandbox.stop());
    const { url, demo } = sandbox;
    process.stdout.write(`${JSON.stringify({ url, demo })}\n`);
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : 'The sandbox could not start'}\n`);
  process.exitCode = 1;
}

function wholeNumber(name: string, value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new RangeError(`--${name} must be a whole number, found ${JSON.stringify(value)}`);
}
