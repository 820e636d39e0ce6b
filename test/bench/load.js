// The load: wrk on kept connections, each sending its next request when it has the answer to its last. It is a process of
// its own and costs a few microseconds per request, so that two cores are enough for it, the target and the service.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { provideTools } from '../../scripts/systemTools.js';

const script = fileURLToPath(new URL('load.lua', import.meta.url));

/** `launch(command, args)` starts a program where load belongs. Throws one sentence when there is no wrk. */
export function startLoader(launch) {
  const { WRK_PATH: wrk } = provideTools(['wrk']);
  const directory = mkdtempSync(join(tmpdir(), 'bench-load-'));
  const files = new Map();
  const fileOf = (bodies) => {
    if (!files.has(bodies)) {
      files.set(bodies, join(directory, `${files.size}.txt`));
      writeFileSync(files.get(bodies), bodies.map((body) => `${body}\n`).join(''));
    }
    return files.get(bodies);
  };
  return {
    /**
     * Sends `bodies` in turn, from the `first` on.
     * @returns `{ requests, failed, seconds, p50Ms, p99Ms }`, and `firstFailure` when one failed
     */
    async run({ url, headers, bodies, first = 0, connections, seconds }) {
      const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
      const sizes = ['--threads', '1', '--connections', `${connections}`, '--duration', `${seconds}s`];
      const child = launch(wrk, [...sizes, ...given, '--script', script, url, '--', fileOf(bodies), `${first}`]);
      const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
      const figures = output.trimEnd().split('\n').at(-1) ?? '';
      if (!figures.startsWith('{')) throw new Error(`wrk gave no figures: ${output}`);
      return { ...JSON.parse(figures), firstFailure: /^first failure: (.*)$/m.exec(output)?.[1] };
    },
    stop: () => rmSync(directory, { recursive: true }),
  };
}
