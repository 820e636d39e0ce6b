import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Authenticator } from '../../../src/auth/Authenticator.js';
import { allScopes } from '../../../src/auth/caller.js';
import { loadDeveloperKeys } from '../../../src/auth/developerKeys.js';

const seconds = 1000;

describe('dev-token script', () => {
  let directory: string;

  beforeEach(async () => {
    directory = path.join(await mkdtemp(path.join(tmpdir(), 'developer-')), 'keys');
  });

  afterEach(() => rm(path.dirname(directory), { recursive: true }));

  async function developerMode(): Promise<Authenticator> {
    return new Authenticator({ mode: 'developer', developerKeys: await loadDeveloperKeys(directory) });
  }

  const root = path.resolve(import.meta.dirname, '../../..');
  const run = promisify(execFile);
  const directoryOfBuild = path.join(tmpdir(), `developer-build-${process.pid}`);
  const script = (...args: string[]) =>
    run(process.execPath, ['--import', 'tsx', 'scripts/devToken.ts', ...args], { cwd: root });

  // Where something has to be built first, it says so beside the token.
  beforeAll(() => script('--dir', directoryOfBuild), 120_000);
  afterAll(() => rm(directoryOfBuild, { recursive: true }));

  it('prints one token that the gateway accepts', async () => {
    const { stdout, stderr } = await script(
      ...['--scope', 'taxpayers:read refresh-jobs:read', '--taxpayer', 't1', '--taxpayer', 't2'],
      ...['--subject', 'grace', '--ttl-seconds', '60', '--dir', directory],
    );
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/), '']);
    const caller = await (await developerMode()).authenticate(`Bearer ${stdout.trim()}`);
    expect(caller).toMatchObject({
      subject: 'grace',
      scopes: new Set(['taxpayers:read', 'refresh-jobs:read']),
      taxpayers: new Set(['t1', 't2']),
    });
    expect(caller.expiresAt - Date.now()).toBeLessThanOrEqual(60 * seconds);
  });

  it('allows everything unless told otherwise', async () => {
    const { stdout } = await script('--dir', directory);
    expect(await (await developerMode()).authenticate(`Bearer ${stdout.trim()}`)).toMatchObject({
      scopes: new Set(allScopes),
      taxpayers: 'any',
    });
  });

  it('leaves the scopes alone when it names taxpayers, and the taxpayers when it names scopes', async () => {
    const mode = await developerMode();
    const [named, scoped] = await Promise.all([
      script('--taxpayer', 't1', '--dir', directory),
      script('--scope', 'taxpayers:read', '--dir', directory),
    ]);
    expect(await mode.authenticate(`Bearer ${named.stdout.trim()}`)).toMatchObject({
      scopes: new Set(allScopes.filter((scope) => scope !== 'taxpayers:any')),
      taxpayers: new Set(['t1']),
    });
    expect(await mode.authenticate(`Bearer ${scoped.stdout.trim()}`)).toMatchObject({
      scopes: new Set(['taxpayers:read', 'taxpayers:any']),
      taxpayers: 'any',
    });
  });

  it.each([
    ['an unknown scope', ['--scope', 'taxpayers:reed'], /unknown scope taxpayers:reed; known are client-links:create/],
    ['an unknown option', ['--taxpayers', 't1'], /Unknown option '--taxpayers'/],
    ['a lifetime that is no number', ['--ttl-seconds', '1h'], /--ttl-seconds must be a whole number/],
    ['an empty taxpayer', ['--taxpayer', ''], /--taxpayer must not be empty/],
    ['both one taxpayer and all', ['--taxpayer', 't', '--scope', 'taxpayers:any'], /leave one of them out/],
  ])('refuses %s in one line', async (_, args, expected) => {
    const failed = await script(...args, '--dir', directory).catch((error) => error);
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(expected) });
    expect(failed.stderr.trim().split('\n')).toHaveLength(1);
  });

  it('signs with one key in every process that starts at once', async () => {
    const printed = await Promise.all(Array.from({ length: 8 }, () => script('--dir', directory)));
    const mode = await developerMode();
    for (const { stdout } of printed) {
      expect(await mode.authenticate(`Bearer ${stdout.trim()}`)).toMatchObject({ kind: 'bearer' });
    }
  });

  it('explains itself', async () => {
    expect((await script('--help')).stdout).toMatch(/--scope[\s\S]*--taxpayer[\s\S]*--ttl-seconds/);
  });
});
