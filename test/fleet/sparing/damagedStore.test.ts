import { randomBytes } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { LocalStore } from '../../../src/stores/LocalStore.js';
import {
  environmentFor,
  type GatewayProcess,
  launchGateway,
  postQuery,
  readTaxpayer,
  spawnGateway,
  type Texts,
} from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const sandbox = await startSandbox();
const root = scratch();

let directories = 0;
const newDirectory = () => join(root, `store-${directories++}`);
const environment = (directory: string) => ({
  ...environmentFor(sandbox),
  ...{ CACHE_URL: `file:${directory}`, TOKEN_BUDGET_PER_HOUR: '0' },
});
const start = (directory: string, env: Texts = {}) => spawnGateway({ ...environment(directory), ...env });
const linesContaining = ({ output }: GatewayProcess, words: string) =>
  output()
    .split('\n')
    .filter((line) => line.includes(words));
const whenTold = (gateway: GatewayProcess, words: string) => until(() => linesContaining(gateway, words).length === 1);
const read = ({ origin }: GatewayProcess, id: string) => readTaxpayer(origin, id);
const calls = (ids: readonly string[]) => ids.map((id) => sandbox.tokenCalls(id));

/** A directory in which a gateway has kept the records of `ids`, and was killed. */
async function storeOf(ids: readonly string[]) {
  const directory = newDirectory();
  const gateway = await start(directory);
  for (const id of ids) await read(gateway, id);
  await kill(gateway, directory);
  return directory;
}

/** Kills a gateway, and takes away its lock: the next one need not wait until it sees that the holder is dead. */
async function kill(gateway: GatewayProcess, directory: string) {
  await gateway.kill();
  rmSync(join(directory, 'lock'), { force: true });
}

/** Creates a link with a key. Returns it, or the code of the error. */
async function create({ origin }: GatewayProcess) {
  const mutation = 'mutation { createClientLink(input: { idempotencyKey: "key" }) { replayed clientLink { id } } }';
  const { data, errors } = await postQuery<{ createClientLink: object }>(origin, mutation);
  return data?.createClientLink ?? errors?.[0]?.extensions.code;
}

describe('A directory of one process', () => {
  it('has files that only their owner can read, and stays small, however often what it keeps changes', async () => {
    const directory = newDirectory();
    const { origin } = await start(directory);
    const { id } = sandbox.addTaxpayer({ metadata: { filler: 'x'.repeat(200_000) } });
    for (let n = 0; n < 45; n += 1) {
      sandbox.rotateToken(id); // so that a job needs the record again
      await postQuery(origin, `{ refreshJob(taxpayerId: "${id}", jobId: "job-${n}") { status } }`);
    }
    expect(calls([id])).toEqual([45]);
    expect(statSync(join(directory, 'journal')).size).toBeLessThan(3_000_000);
    expect(['', 'journal'].map((name) => statSync(join(directory, name)).mode & 0o777)).toEqual([0o700, 0o600]);
  });

  it('is refused to a second process in one line, unless the first ends meanwhile', async () => {
    const directory = newDirectory();
    const first = await start(directory);
    const { output, exited } = launchGateway({ ...environment(directory), DRAIN_TIMEOUT_MS: '500' });
    expect(await exited).toBe(1);
    expect(output()).toMatch(
      /^{.*waiting until it ends.*\nCACHE_URL: another gateway uses \S+: stop it first .*redis:\/\/.*\n$/,
    );
    const { id } = sandbox.addTaxpayer();
    await read(first, id);
    const second = start(directory, { DRAIN_TIMEOUT_MS: '20000' });
    expect(await first.stop()).toBe(0);
    await read(await second, id);
    expect(calls([id])).toEqual([1]);
  });

  it('that is gone is told, and its gateway goes on from memory; when it is back, nothing is lost', async () => {
    const directory = newDirectory();
    const ids = sandbox.addTaxpayers(3);
    const [before, during, after] = ids as [string, string, string];
    const gateway = await start(directory);
    await read(gateway, before);
    renameSync(directory, `${directory}-away`);
    await whenTold(gateway, 'The directory or its file lock is gone (ENOENT)');
    for (const id of [before, during]) await read(gateway, id);
    expect(await create(gateway)).toBe('UPSTREAM_UNAVAILABLE');
    renameSync(`${directory}-away`, directory);
    await whenTold(gateway, 'store available again');
    await read(gateway, after);
    await kill(gateway, directory);
    const next = await start(directory);
    for (const id of ids) await read(next, id);
    expect(calls(ids)).toEqual([1, 1, 1]);
  });

  it('belongs to the process that took it while the first stood still, which takes no new key until it is restarted', async () => {
    const directory = newDirectory();
    const first = await start(directory);
    first.child.kill('SIGSTOP');
    const second = await start(directory);
    const created = await create(second);
    first.child.kill('SIGCONT');
    const { id } = sandbox.addTaxpayer();
    await read(first, id);
    expect(await create(first)).toBe('UPSTREAM_UNAVAILABLE');
    await kill(second, directory);
    await whenTold(
      first,
      'taken by another gateway while this one stood still: restart it if this does not end (ELOCKED)',
    );
    expect(await create(first)).toBe('UPSTREAM_UNAVAILABLE');
    expect(await first.stop()).toBe(0);
    expect(await create(await start(directory))).toEqual({ ...(created as object), replayed: true });
  });

  it('loses nothing that was answered when its gateway is killed under load, again and again', async () => {
    const directory = newDirectory();
    const answered: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const gateway = await start(directory);
      const load = sandbox.addTaxpayers(40).map(async (id) => {
        await read(gateway, id);
        answered.push(id);
      });
      const ended = Promise.allSettled(load);
      await until(() => answered.length > 40 * round + 5);
      await kill(gateway, directory);
      await ended;
    }
    const next = await start(directory);
    const before = calls(answered);
    for (const id of answered) await read(next, id);
    expect(calls(answered)).toEqual(before);
  }, 90_000);
});

describe('A damaged file in the directory', () => {
  const ids: string[] = [];
  let sound: string;
  beforeAll(async () => {
    ids.push(...sandbox.addTaxpayers(4));
    sound = await storeOf(ids);
  });

  it('that was cut off is told, and the gateway serves and remembers', async () => {
    const directory = newDirectory();
    cpSync(sound, directory, { recursive: true });
    truncateSync(join(directory, 'journal'), 100);
    const gateway = await start(directory);
    expect(linesContaining(gateway, 'was damaged')).toHaveLength(1);
    const { id } = sandbox.addTaxpayer();
    await read(gateway, id);
    await kill(gateway, directory);
    const next = await start(directory);
    await read(next, id);
    expect(calls([id])).toEqual([1]);
    expect(linesContaining(next, 'was damaged')).toEqual([]);
  });

  it('of any kind gives back a state of an earlier moment, never a wrong value and never an error', async () => {
    const directory = newDirectory();
    const store = await LocalStore.open(directory, { waitMs: 0 });
    for (let round = 0; round < 20; round += 1) {
      for (const key of ['a', 'b', 'c']) await store.put(key, Buffer.from(`${key} ${round}`), 60_000, 'always');
    }
    await store.close();
    const whole = readFileSync(join(directory, 'journal'));
    for (let n = 0; n < 150; n += 1) {
      const bytes = Buffer.from(whole);
      const at = Math.floor(Math.random() * bytes.length);
      if (n % 3 === 0) bytes.fill(0, at, Math.min(at + 64, bytes.length));
      else bytes.set(randomBytes(1 + (n % 40)).subarray(0, bytes.length - at), at);
      writeFileSync(join(directory, 'journal'), n % 3 === 1 ? bytes.subarray(0, at) : bytes);
      const damaged = await LocalStore.open(directory, { waitMs: 0 });
      const held = await Promise.all(['a', 'b', 'c'].map(async (key) => String((await damaged.get(key))?.value)));
      const rounds = held.map((text, each) =>
        text === 'undefined' ? -1 : Number(text.replace(`${'abc'[each]} `, '')),
      );
      const [a = 0, b = 0, c = 0] = rounds;
      const isOneMoment = a >= b && b >= c && c >= a - 1; // each round wrote them in this order
      expect({ n, at, rounds, isOneMoment }).toMatchObject({ isOneMoment: true });
      await damaged.close();
    }
    expect(readdirSync(directory)).toEqual(['journal']);
  }, 60_000);
});

const withoutFile = newDirectory();
mkdirSync(join(withoutFile, 'journal'), { recursive: true });

it.each([
  ['with a file that is none', withoutFile],
  ['in a file', `${import.meta.filename}/cache`],
  ['under /proc, where Node.js would try for ever', '/proc/nothing/cache'],
])(
  'A directory that cannot be made or read is one line that names CACHE_URL and the whole path: %s',
  async (_, directory) => {
    const { output, exited } = launchGateway(environment(directory));
    expect(await exited).toBe(1);
    expect(output()).toMatch(new RegExp(`^CACHE_URL: the directory ${directory} cannot be opened: E[A-Z]+\n$`));
  },
);
