import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { allScopes } from '../../src/auth/caller.js';
import { type DeveloperToken, loadDeveloperKeys } from '../../src/auth/developerKeys.js';

describe('developer mode', () => {
  let directory: string;

  beforeEach(async () => {
    directory = path.join(await mkdtemp(path.join(tmpdir(), 'developer-')), 'keys');
  });

  afterEach(() => rm(path.dirname(directory), { recursive: true }));

  const wide: DeveloperToken = { subject: 'dev', scopes: allScopes, taxpayers: [], ttlSeconds: 60 };

  async function developerMode(): Promise<Authenticator> {
    return new Authenticator({ mode: 'developer', developerKeys: await loadDeveloperKeys(directory) });
  }

  it('lets the developer do everything without a token', async () => {
    expect((await developerMode()).authenticate(undefined)).toMatchObject({
      kind: 'developer',
      taxpayers: 'any',
      scopes: new Set(allScopes),
      expiresAt: Number.POSITIVE_INFINITY,
    });
  });

  it('restricts the developer to what a token allows', async () => {
    const keys = await loadDeveloperKeys(directory);
    const token = await keys.sign({ ...wide, scopes: ['taxpayers:read'], taxpayers: ['t1'] });
    expect(await (await developerMode()).authenticate(`Bearer ${token}`)).toMatchObject({
      kind: 'bearer',
      subject: 'dev',
      scopes: new Set(['taxpayers:read']),
      taxpayers: new Set(['t1']),
    });
  });

  it('refuses tokens of another key, and anything that is no token', async () => {
    const stranger = await loadDeveloperKeys(`${directory}-of-another`);
    const mode = await developerMode();
    for (const header of [`Bearer ${await stranger.sign(wide)}`, '', 'Bearer x', 'Basic YTpi']) {
      await expect((async () => mode.authenticate(header))()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    }
  });

  it('keeps one key pair, readable by its owner only, for all who start at once', async () => {
    const loaded = await Promise.all(Array.from({ length: 20 }, () => loadDeveloperKeys(directory)));
    expect(new Set(loaded.map(({ publicKey }) => JSON.stringify(publicKey))).size).toBe(1);
    expect(await readdir(directory)).toEqual(['developer-key.json']);
    expect((await stat(path.join(directory, 'developer-key.json'))).mode & 0o777).toBe(0o600);
  });

  it('does not show the private key', async () => {
    const keys = await loadDeveloperKeys(directory);
    const { d } = JSON.parse(await readFile(path.join(directory, 'developer-key.json'), 'utf8'));
    expect(JSON.stringify(keys)).not.toContain(d);
    expect(JSON.stringify(keys)).toContain(keys.publicKey.x);
  });

  it('names the file that can be neither read nor made, and what was expected', async () => {
    await writeFile(directory, 'a file where the directory should be');
    const file = path.join(directory, 'developer-key.json');
    await expect(loadDeveloperKeys(directory)).rejects.toThrow(
      `${file} can be neither read nor created (EEXIST): expected ${directory} to be a directory that this user may`,
    );
  });

  it.each(['', '{}', 'not JSON'])('says what to do when the file holds %p', async (text) => {
    await loadDeveloperKeys(directory);
    await writeFile(path.join(directory, 'developer-key.json'), text);
    await expect(loadDeveloperKeys(directory)).rejects.toThrow(/does not hold a developer key\. Delete it/);
  });
});
