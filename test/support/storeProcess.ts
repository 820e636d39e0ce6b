import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Order } from './stores/storeProcess.js';

export interface StoreProcess {
  readonly pid: number;
  order(order: Order): Promise<unknown>;
  /** Resolves with the next message of the process. */
  next(): Promise<{ readonly result?: unknown; readonly written?: number }>;
  send(order: Order): void;
  kill(): Promise<void>;
  /** Makes the process close its store; resolves with the exit code once it has ended by itself. */
  close(): Promise<number | null>;
}

/** Starts a real process that has the store at `url` open; it can write no file larger than `maxFileKiB`. */
export async function startStoreProcess(url: string, maxFileKiB?: number): Promise<StoreProcess> {
  const node = [process.execPath, '--import', 'tsx', join('test', 'support', 'stores', 'storeProcess.ts')];
  const limit = maxFileKiB ? `ulimit -f ${maxFileKiB * 2}; ` : '';
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, ...node, url], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const next = async () => (await once(child, 'message'))[0];
  const exited = once(child, 'exit');
  await Promise.race([next(), exited.then(() => Promise.reject(new Error('the store process did not start')))]);
  const order = async (command: Order) => {
    const answer = next();
    child.send(command);
    return (await answer).result;
  };
  return {
    pid: child.pid ?? 0,
    next,
    order,
    send: (command) => void child.send(command),
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    close: async () => {
      await order({ do: 'close' });
      return (await exited)[0];
    },
  };
}
