import { startSandbox } from '../sandbox/Sandbox.js';
import { type Command, UsageError } from './Command.js';

/** A stand-in for the service alone: for a gateway in another container, or for tests of other programs. */
export const sandbox: Command = {
  options: ['host', 'port'],
  async run(_, { host, port = '4010' }) {
    if (host === '') throw new UsageError('--host must be an address');
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
      throw new UsageError('--port must be a whole number from 0 to 65535');
    }
    const { url, demo, demoRows, stop } = await startSandbox({ host, port: Number(port) });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
    const ids = demoRows.map(([what, id]) => `${what}: ${id}`);
    return { data: { url, demo }, lines: [`Sandbox of the service: ${url}`, ...ids] };
  },
};
