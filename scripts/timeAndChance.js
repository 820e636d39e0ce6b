// Where src/ takes time or chance from anywhere but its Runtime, in the rooms that test/simulation runs (npm run check).

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const rooms = ['auth', 'cache', 'datasources', 'stores', 'upstream'];
/** Drivers of real stores: what they talk to has a clock of its own. */
const drivers = /^(?:lmdb|redis)/i;
const direct =
  /\b(?:Date\.now|new Date\(\)|performance\.now|process\.hrtime|Math\.random)|(?<![.\w])(?:setTimeout|setInterval|setImmediate|clearTimeout|clearInterval)\(|\bnode:timers\b|\b(?:randomUUID|randomBytes|randomInt|randomFill(?:Sync)?|getRandomValues)\b(?=.*'node:crypto')|\bcrypto\.random/g;

const src = fileURLToPath(new URL('../src', import.meta.url));
const found = rooms.flatMap((room) => filesOf(room).flatMap(usesIn));
console.log(found.length === 0 ? 'Time and chance come from the Runtime alone.' : found.join('\n'));
if (found.length > 0) process.exitCode = 1;

function filesOf(room) {
  const names = readdirSync(join(src, room), { recursive: true });
  return names.filter((name) => name.endsWith('.ts') && !drivers.test(name)).map((name) => join(room, name));
}

/** As `cache/Forgets.ts:31: Date.now: take it from the Runtime`. Comments may name them. */
function usesIn(path) {
  const lines = readFileSync(join(src, path), 'utf8').split('\n');
  return lines.flatMap((line, at) =>
    [...line.replace(/\/\/.*|^\s*\/?\*.*/, '').matchAll(direct)].map(
      ([use]) => `src/${path}:${at + 1}: ${use.replace('(', '')}: take it from the Runtime (src/process/Runtime.ts)`,
    ),
  );
}
