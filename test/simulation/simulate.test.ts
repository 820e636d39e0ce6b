import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { provideNode } from '../../scripts/provideNode.js';
import { planted } from './planted.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Said {
  readonly code: unknown;
  readonly text: string;
}

/** What the command prints, and its exit code. */
const simulate = (...args: readonly string[]) => simulateOn(process.execPath, ...args);

function simulateOn(node: string, ...args: readonly string[]): Promise<Said> {
  const command = ['test/simulation/main.js', ...args];
  const env = { ...process.env, NODE_OPTIONS: '' };
  return new Promise((resolve) => {
    execFile(node, command, { cwd: root, env, maxBuffer: 1e8 }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, text: stdout + stderr }),
    );
  });
}

const traces = ({ text }: { readonly text: string }) => /^traces: (\w+)$/m.exec(text)?.[1];

describe('The simulated fleet', () => {
  it('keeps its promises for the seeds of the day, and for those that have failed before', async () => {
    const days = await simulate('--seeds', '5000');
    expect(days.text).toMatch(/^5000 seeds from \d+ in [\d.]+ s \(\d+ a second\): 0 failed$/m);
    expect(days.code).toBe(0);
    expect(await simulate('--failed')).toMatchObject({ code: 0, text: expect.stringMatching(/: 0 failed$/m) });
  }, 300_000);

  it('does the same for the same seeds, however many threads there are, and something else for others', async () => {
    const one = traces(await simulate('--seeds', '60', '--from', '1', '--processes', '1'));
    expect(one).toMatch(/^\w{12}$/);
    expect(traces(await simulate('--seeds', '60', '--from', '1', '--processes', '2'))).toBe(one);
    expect(traces(await simulate('--seeds', '60', '--from', '2'))).not.toBe(one);
  }, 300_000);

  it('does the same on another Node.js', async () => {
    const node = join(await provideNode('24'), 'node');
    const seeds = ['--seeds', '60', '--from', '1'];
    expect(traces(await simulateOn(node, ...seeds))).toBe(traces(await simulate(...seeds)));
  }, 300_000);

  it('keeps a plan, shows a kept one, and says when there is none', async () => {
    const [kept = ''] = readFileSync(join(root, 'test/simulation/failedPlans.jsonl'), 'utf8').split('\n');
    const { seed } = JSON.parse(kept);
    expect(await simulate('--keep', String(seed))).toEqual({
      code: 0,
      text: `The plan of seed ${seed} is kept already\n`,
    });
    expect(await simulate('--failed', '--seed', String(seed))).toMatchObject({
      code: 0,
      text: expect.stringMatching(/^trace: \w{16}$/m),
    });
    expect(await simulate('--failed', '--seed', '1')).toEqual({ code: 2, text: 'No plan of seed 1 is kept\n' });
  }, 300_000);

  it('finds a defect that is planted, shows it, and makes it shorter', async () => {
    const only = ['--planted', '--only', 'a job status is shared for ten seconds'];
    const { code, text } = await simulate(...only, '--seeds', '200');
    expect(code).toBe(0);
    const [, seed = ''] = /\| (\d+) \| trueAndFresh \|/.exec(text) ?? [];
    const shown = await simulate('--seed', seed, ...only);
    expect(shown.code).toBe(1);
    expect(shown.text).toMatch(/^FOUND at .* trueAndFresh: job/m);
    const shrunk = await simulate('--shrink', seed, ...only);
    const [, steps, before] = /^(\d+) of (\d+) steps$/m.exec(shrunk.text) ?? [];
    expect(Number(steps)).toBeLessThan(Number(before));
    expect(shrunk.text).toMatch(/^FOUND at .* trueAndFresh: job/m);
    expect((await simulate('--seed', seed)).code).toBe(0);
  }, 300_000);

  it('has at least forty defects to plant, each with a name of its own, where its source is as it says', () => {
    expect(new Set(planted.map(({ name }) => name)).size).toBe(planted.length);
    expect(planted.length).toBeGreaterThanOrEqual(40);
    const places = planted.map(({ name, file, find }) => ({
      name,
      times: readFileSync(join(root, 'src', file), 'utf8').split(find).length - 1,
    }));
    expect(places.filter(({ times }) => times !== 1)).toEqual([]);
  });

  it('is used as its page says', async () => {
    const page = readFileSync(join(root, 'docs/simulation.md'), 'utf8');
    const commands = [...page.matchAll(/^npm run simulate(?: -- (.*))?$/gm)].map(([, args]) => args?.split(' ') ?? []);
    expect(commands).toHaveLength(6);
    for (const args of commands) {
      const { code, text } = await simulate(
        ...args,
        '--seeds',
        '50',
        '--only',
        'a job status is shared for ten seconds',
      );
      expect({ args, code, text }).toMatchObject({ code: 0 });
    }
  }, 300_000);

  it('explains itself, and a wrong argument', async () => {
    expect(await simulate('--help')).toMatchObject({ code: 0, text: expect.stringContaining('--shrink N') });
    const wrong = await simulate('--seeds', 'many');
    expect(wrong).toMatchObject({ code: 2, text: expect.stringContaining('--seeds takes a whole number, not "many"') });
  });
});
