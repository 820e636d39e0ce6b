import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../../support/atEnd.js';
import { freePort } from '../../support/freePort.js';
import { entry, environmentFor, metric, post, startTrustedProvider } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

/** As many as one document may ask for: each request writes as many audit lines. */
const taxpayersPerRequest = 60;
/** More than a pipe and the gateway's buffer hold together. */
const tooMuch = 150;

interface LogLine {
  readonly msg: string;
  readonly time: string;
  readonly requestId?: string;
}

const provider = await startTrustedProvider();
const sandbox = await startSandbox();
const ids = sandbox.addTaxpayers(taxpayersPerRequest);
const query = `{ ${ids.map((id, n) => `t${n}: taxpayerToken(taxpayerId: "${id}") { accessToken }`).join(' ')} }`;

let directory: string;
let fifo: string;
let origin: string;
let child: ChildProcess;
beforeEach(() => {
  directory = scratch();
  fifo = join(directory, 'log');
  execFileSync('mkfifo', [fifo]);
});
/** Starts a gateway that logs to `stdout` and resolves when it serves; its log is not looked at for that. */
async function start(stdout: number | 'pipe', [command = '', ...args]: readonly string[] = [process.execPath, entry]) {
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  child = spawn(command, args, {
    env: {
      PATH: process.env['PATH'],
      ...environmentFor(sandbox),
      ...provider.env,
      LOG_OPERATIONS: 'none',
      PORT: String(port),
      RATE_LIMIT_PER_MINUTE: '0',
      TOKEN_BUDGET_PER_HOUR: '0',
    },
    cwd: directory,
    stdio: ['ignore', stdout, 'inherit'],
  });
  const exited = once(child, 'exit');
  atEnd(() => {
    child.kill('SIGKILL');
    return exited;
  });
  await until(() =>
    fetch(`${origin}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
}

/** A pipe nobody reads yet. */
function openPipe(): { readonly readEnd: number; readonly writeEnd: number } {
  const readEnd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  return { readEnd, writeEnd: openSync(fifo, constants.O_WRONLY) };
}

/** Writes 60 lines to the log with each request, one request after the other, each of another caller: equal ones are told once. */
async function writeLines(requests: number, firstRequest = 0) {
  for (let n = firstRequest; n < firstRequest + requests; n += 1) {
    const scope = 'taxpayers:read taxpayer-tokens:read taxpayers:any';
    const authorization = `Bearer ${await provider.token({ sub: `caller ${n}`, scope })}`;
    const response = await post(
      `${origin}/graphql`,
      { query },
      { 'x-request-id': `request-${n}`, authorization },
      { signal: AbortSignal.timeout(10_000) },
    );
    expect(await response.json()).not.toHaveProperty('errors');
  }
}

async function expectLive() {
  const response = await fetch(`${origin}/health/live`, { signal: AbortSignal.timeout(5000) });
  expect(await response.json()).toEqual({ status: 'live' });
}

const linesDropped = () => metric({ origin }, 'gateway_log_lines_dropped_total');

function collect(stream: Readable): { readonly lines: () => readonly LogLine[]; readonly length: () => number } {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return {
    lines: () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as LogLine),
    length: () => text.length,
  };
}

const readerOf = (fd: number) => new Socket({ fd, readable: true, writable: false });

async function stop(): Promise<number | null> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = await exited;
  return code as number | null;
}

describe('A reader of the log that stalls', () => {
  it.each(['a socket', 'a terminal'] as const)(
    'holds up no request when it reads from %s',
    async (kind) => {
      if (kind === 'a socket')
        await start('pipe'); // which is a socket pair in Node.js
      else await start('pipe', ['script', '-qec', `"${process.execPath}" "${entry}"`, '/dev/null']);
      await writeLines(tooMuch);
      await expectLive();
      expect(await linesDropped()).toBeGreaterThan(0);
    },
    60_000,
  );

  it('of a pipe finds a bounded number of lines in order when it is back; a metric counts the others', async () => {
    const { readEnd, writeEnd } = openPipe();
    await start(writeEnd);
    closeSync(writeEnd);
    await writeLines(tooMuch);
    await expectLive();
    const dropped = await linesDropped();
    const log = collect(readerOf(readEnd));
    const audited = () => log.lines().filter(({ msg }) => msg === 'audit');
    await until(() => audited().length === tooMuch * taxpayersPerRequest - dropped);
    expect(log.length()).toBeLessThan(1.3 * 1024 * 1024);
    await writeLines(1, tooMuch);
    await until(() => audited().length === (tooMuch + 1) * taxpayersPerRequest - dropped);

    const requests = audited().map(({ requestId }) => Number(requestId?.slice('request-'.length)));
    expect(requests).toEqual(requests.toSorted((one, other) => one - other));
    expect(await linesDropped()).toBe(dropped);
  }, 60_000);
});

it.each(['whose reader is gone', 'on a full disk'] as const)(
  'A log %s costs neither the gateway nor its time',
  async (what) => {
    if (what === 'on a full disk') await start(openSync('/dev/full', constants.O_WRONLY));
    else {
      const { readEnd, writeEnd } = openPipe();
      await start(writeEnd);
      closeSync(writeEnd);
      closeSync(readEnd);
    }
    await writeLines(tooMuch);
    expect(await linesDropped()).toBeGreaterThan(0);
    const cpuSeconds = () => metric({ origin }, 'process_cpu_seconds_total');
    const before = await cpuSeconds();
    await sleep(1000);
    expect((await cpuSeconds()) - before).toBeLessThan(0.5);
    expect(await stop()).toBe(0);
  },
  60_000,
);
