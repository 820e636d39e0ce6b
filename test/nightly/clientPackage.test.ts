import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { buildSchema } from 'graphql';
import { read } from '../support/repository.js';
import { run } from '../support/run.js';
import { expectPublishable, pack } from './support/tarball.js';

const folder = 'packages/client';
const json = (path: string) => JSON.parse(read(path));
let tarball: string;

beforeAll(async () => {
  tarball = await pack(`./${folder}`);
});

describe('taxpayer-gateway-client', () => {
  it('has the version of the gateway, no dependency, and takes graphql 16 and 17', () => {
    const gateway = json('package.json');
    const { version, dependencies, peerDependencies } = json('packages/client/package.json');
    expect(version).toBe(gateway.version);
    expect(dependencies).toBeUndefined();
    expect(peerDependencies).toEqual({ graphql: '^16.0.0 || ^17.0.0' });
  });

  it('holds nothing of the server', async () => {
    const files = (await run('tar', ['tzf', tarball])).stdout.trim().split('\n');
    const modules = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => ['.js', '.d.ts'].map((ending) => `package/dist/${name.replace(/\.ts$/, ending)}`));
    const others = ['LICENSE', 'README.md', 'package.json', 'schema.graphql'].map((name) => `package/${name}`);
    expect(files.sort()).toEqual([...modules, ...others].sort());
  });

  it('keeps what publint asks for', () => expectPublishable(tarball));

  it('resolves its types as attw asks for', async () => {
    const attw = 'test/nightly/node_modules/@arethetypeswrong/cli/dist/index.js';
    const options = '--ignore-rules cjs-resolves-to-esm --format ascii --exclude-entrypoints schema.graphql'.split(' ');
    await run(process.execPath, [attw, tarball, ...options], { env: { ...process.env, NODE_OPTIONS: '' } });
  });

  it('is below 25 kB for browsers, with what it needs of graphql, and brings only what is imported', async () => {
    expect((await bundled("export * from './index.js'")).length).toBeLessThan(25_000);
    expect((await bundled("export { errorCodeOf } from './index.js'")).length).toBeLessThan(2_500);
    const watches = await bundled("export { watchRefreshJob } from './index.js'");
    expect(watches).not.toContain('CreateClientLink');
  });

  it("has the gateway's schema as a client sees it", () => {
    const schema = buildSchema(read(join(folder, 'schema.graphql')));
    expect(Object.keys(schema.getQueryType()?.getFields() ?? {})).toEqual(['refreshJob', 'taxpayer', 'taxpayerToken']);
    const names = Object.keys(schema.getTypeMap()).filter((name) => /^_[^_]|.__\w|federation|link/.test(name));
    expect(names).toEqual([]);
  });
});

async function bundled(contents: string) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: resolve(folder, 'dist') },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    minify: true,
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}
