import { startSandbox } from '../sandbox/Sandbox.js';
import { type Command, UsageError } from './Command.js';

export const sandbox: Command = {
  does: 'starts a stand-in for the service alone',
  details: 'For a gateway in another container, or for tests of other programs. It ends on SIGTERM or SIGINT.',
  options: {
    host: 'address to listen on; default 127.0.0.1, in a container 0.0.0.0',
    port: 'port to listen on; default 4010, 0 is a free one',
    'client-id': 'default sandbox-client',
    'client-secret': 'default sandbox-secret-not-real',
    'api-version': 'the accepted Service-API-Version; default 2024-01-01',
    'job-duration-ms': 'how long a job stays processing after it is first read; default 15000',
  },
  async run(_, given) {
    const number = (name: string) => {
      const { [name]: text = '' } = given;
      if (name in given && !/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} must be a whole number`);
      return name in given ? Number(text) : undefined;
    };
    const { url, demo, stop } = await startSandbox({
      host: given['host'],
      port: number('port') ?? 4010,
      clientId: given['client-id'] ?? 'sandbox-client',
      clientSecret: given['client-secret'] ?? 'sandbox-secret-not-real',
      apiVersion: given['api-version'],
      jobDurationMs: number('job-duration-ms'),
    });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
    const ids = Object.entries(demo.taxpayerIds).map(([name, id]) => `${name}: ${id}`);
    return { ok: true, data: { url, demo }, lines: [`Sandbox of the service: ${url}`, ...ids] };
  },
};
