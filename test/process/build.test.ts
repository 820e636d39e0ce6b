import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { run } from '../../scripts/run.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** The scripts of this repository in a project of two lines. */
const project = mkdtempSync(join(tmpdir(), 'build-'));
const inProject = (path: string) => join(project, path);
const modules = inProject('node_modules');
const start = () => run(process.execPath, ['scripts/start.js'], { cwd: project });
const built = { code: 0, output: expect.stringMatching(/^Building… done in .* s\nstarted$/) };
const asItIs = { code: 0, output: 'started' };

function write(path: string, text: string) {
  mkdirSync(dirname(inProject(path)), { recursive: true });
  writeFileSync(inProject(path), text);
}

beforeAll(async () => {
  for (const path of [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'packages/client/tsconfig.json',
    'scripts',
  ]) {
    cpSync(join(root, path), inProject(path), { recursive: true });
  }
  write('src/main.ts', "console.log('started');\n");
  write('src/schema/schema.graphql', 'type Query {\n  field: Int\n}\n');
  write('packages/client/src/index.ts', 'export const client = 1;\n');
});
beforeEach(() => {
  rmSync(modules, { force: true });
  symlinkSync(join(root, 'node_modules'), modules);
});
afterAll(() => rmSync(project, { recursive: true }));

describe('npm start', () => {
  it('builds what was not built', async () => {
    expect(await start()).toEqual(built);
    expect(await start()).toEqual(asItIs);
  });

  it.each([
    'src/main.ts',
    'packages/client/src/index.ts',
    'package-lock.json',
    'scripts/build.js',
    'scripts/bundle.js',
  ])('builds again after a change of %s', async (path) => {
    const now = new Date();
    utimesSync(inProject(path), now, now);
    expect(await start()).toEqual(built);
    expect(await start()).toEqual(asItIs);
  });

  it('builds again when the typed client is missing', async () => {
    rmSync(inProject('packages/client/dist'), { recursive: true });
    expect(await start()).toEqual(built);
  });

  it('needs no development package where the build is fresh, and names them where it is not', async () => {
    rmSync(modules);
    expect(await start()).toEqual(asItIs);
    write('src/main.ts', "console.log('started', 'again');\n");
    const output = 'Building…\nA build needs the development packages: run npm ci first.';
    expect(await start()).toEqual({ code: 1, output });
  });

  it('shows what the compiler says', async () => {
    write('src/main.ts', "const text: string = 1;\nconsole.log('started', text);\n");
    const output = expect.stringMatching(/^Building…\nsrc\/main\.ts.* error TS2322: [\s\S]*\nThe build failed\.$/);
    expect(await start()).toEqual({ code: 1, output });
  });
});
