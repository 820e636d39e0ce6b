// Bundles the gateway into dist/ (npm start, npm run build). Reading a thousand small modules is most of a start; what only
// some gateways need (sandbox, Redis, explorers) stays in files of its own, read when first used. Classes may be renamed on
// the way, so nothing may depend on a class's name.

import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/**
 * Read from node_modules as they are: native code, an optional peer that we never use, a page of nine megabytes, and what
 * node-fetch asks for only where Node.js has no streams of its own.
 */
const external = ['class-validator', '@graphql-yoga/render-graphiql', 'web-streams-polyfill'];

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ['src/main.ts'],
  outdir: dist,
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  external,
  // In a bundle it would not find the hashes of Node.js, and bring much slower ones.
  alias: { '@apollo/utils.createhash': 'node:crypto' },
  // Names stay, for stack traces.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'error',
  // CommonJS packages ask for the modules of Node.js by a `require` that an ES module does not have.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
  },
  write: false,
});

// By renames and with the entry last: whoever starts while this runs finds a whole build, the one before or this one.
await mkdir(join(dist, 'chunks'), { recursive: true });
for (const { path, contents } of outputFiles.sort((a, b) => order(a.path) - order(b.path))) {
  const written = `${path}.${process.pid}`;
  await writeFile(written, contents);
  await rename(written, path);
}
const present = new Set(outputFiles.map(({ path }) => basename(path)));
for (const name of await readdir(join(dist, 'chunks'))) {
  if (!present.has(name)) await rm(join(dist, 'chunks', name), { force: true });
}

function order(path) {
  return dirname(path) === dist ? 1 : 0;
}
