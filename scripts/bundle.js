// Puts the gateway and what it loads at every start into a few files. Reading a thousand small modules is most of a start;
// what only some gateways need (sandbox, Redis, explorer) stays in files of its own, read when first used. Classes may be
// renamed on the way, so nothing may depend on a class's name.

import { join } from 'node:path';
import { build } from 'esbuild';

/**
 * Read from node_modules as they are: native code, an optional peer that we never use, a page of nine megabytes, and what
 * node-fetch asks for only where Node.js has no streams of its own.
 */
const external = ['lmdb', 'class-validator', '@graphql-yoga/render-graphiql', 'web-streams-polyfill'];

/** Replaces `main.js` in a directory of compiled files by its bundle. Everything else in it stays usable by itself. */
export async function bundleMain(directory) {
  await build({
    entryPoints: [join(directory, 'main.js')],
    outdir: directory,
    allowOverwrite: true,
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
    // Beside the bundle, unnamed in it: for `npm run bench -- --profile`.
    sourcemap: 'external',
    sourcesContent: false,
    logLevel: 'error',
    // CommonJS packages ask for the modules of Node.js by a `require` that an ES module does not have.
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
    },
  });
}
