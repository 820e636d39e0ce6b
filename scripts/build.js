// Bundles the gateway into dist/ (npm start, npm run build). Reading a thousand small modules is most of a start; what only
// some gateways need (sandbox, Redis, explorers) stays in files of its own, read when first used. Classes may be renamed on
// the way, so nothing may depend on a class's name.

import { readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

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
  mainFields: ['module', 'main'], // of graphql and OpenTelemetry only what is used: a fifth off the start
  // An optional peer that we never use, and what node-fetch asks for only where Node.js has no streams of its own.
  external: ['class-validator', 'web-streams-polyfill'],
  // In a bundle it would not find the hashes of Node.js, and bring much slower ones.
  alias: { '@apollo/utils.createhash': 'node:crypto' },
  minifyWhitespace: true, // names stay, for stack traces
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
const explorer = join(dist, 'explorer.html.gz');
const madeAt = statSync(explorer, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if ([import.meta.filename, join(root, 'package-lock.json')].some((source) => statSync(source).mtimeMs > madeAt)) {
  outputFiles.push({ path: explorer, contents: await explorerPage() });
}
const sandbox = readFileSync(join(root, 'src/http/sandbox.html'));
outputFiles.push({ path: join(dist, 'sandbox.html.gz'), contents: gzipSync(sandbox) });
const isEntry = ({ path }) => basename(path) === 'main.js';
for (const file of outputFiles.sort((a, b) => Number(isEntry(a)) - Number(isEntry(b)))) {
  const unfinished = `${file.path}.${process.pid}`;
  await writeFile(unfinished, file.contents, { mode: isEntry(file) ? 0o755 : 0o644 }); // npx runs the entry
  await rename(unfinished, file.path);
}
const present = new Set(outputFiles.map(({ path }) => basename(path)));
for (const name of await readdir(join(dist, 'chunks'))) {
  if (!present.has(name)) await rm(join(dist, 'chunks', name), { force: true });
}

/** GraphiQL as one page of nine megabytes, compressed. It asks the gateway for its tabs, which must not move: one that does misses its first click. */
async function explorerPage() {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const head = `<head><style>.graphiql-tab{transform:none!important}</style><script>${hideFederation};hideFederation();${allowNoStorage};allowNoStorage();${onActiveTab}</script>`;
  const page = renderGraphiQL({ title: 'Taxpayer gateway · GraphiQL' }).replace('<head>', () => head);
  const start = page.lastIndexOf('YogaGraphiQL.renderYogaGraphiQL(');
  const begin = `fetch('/graphiql/options').then((answer) => answer.json())
    .then((options) => YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), onActiveTab(options)));`;
  return gzipSync(page.slice(0, start) + begin + page.slice(page.indexOf('</script>', start)), { level: 9 });
}

/** Runs in the page: a browser that blocks cookies throws at `localStorage`, without which GraphiQL shows nothing. */
function allowNoStorage() {
  try {
    window.localStorage.getItem('');
  } catch {
    const kept = new Map();
    const getItem = (key) => kept.get(key) ?? null;
    const setItem = (key, value) => kept.set(key, value);
    const removeItem = (key) => kept.delete(key);
    Object.defineProperty(window, 'localStorage', { value: { getItem, setItem, removeItem } });
  }
}

/** Runs in the page: GraphiQL opens the tab of its last visit only for that tab's query, and otherwise adds an empty one. */
function onActiveTab(options) {
  const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem('graphiql:tabState') ?? '{"tabs":[]}');
  const { query, variables, headers: initialHeaders } = tabs[activeTabIndex] ?? {};
  return query && !location.search.includes('query=') ? { ...options, query, variables, initialHeaders } : options;
}

/** Runs in the page: takes from the schema, as it is asked for, what only routers use. */
function hideFederation() {
  const isHidden = ({ name }) => /^(_Any|_Entity|_Service|_entities|_service|(federation|link)__.*)$/.test(name);
  const isOfRouters = ({ args }) => /"(federation|link)__/.test(JSON.stringify(args));
  const ask = window.fetch;
  window.fetch = async (target, options) => {
    const answer = await ask(target, options);
    if (!String(options?.body).includes('__schema')) return answer;
    const result = await answer.json();
    const schema = result.data?.__schema;
    if (schema) {
      schema.types = schema.types.filter((type) => !isHidden(type));
      for (const type of schema.types) type.fields = type.fields?.filter((field) => !isHidden(field));
      schema.directives = schema.directives.filter((directive) => !isOfRouters(directive));
    }
    return Response.json(result, { status: answer.status });
  };
}
