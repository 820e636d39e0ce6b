import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { startTestGateway } from '../../support/gateway.js';
import { quickPolls } from '../../support/liveJob.js';

const root = resolve(import.meta.dirname, '../../..');
const run = promisify(execFile);

function page(name: string) {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code = '']) => ({ language, code }));
}

describe('docs/live-updates.md', () => {
  const blocks = page('live-updates.md');

  it('has the blocks that are tried below, and no others', () => {
    expect(blocks.map(({ language }) => language)).toEqual(['sh', 'js']);
  });

  it.each([0, 1])('follows a job to its end in block %d', async (index) => {
    const gateway = await startTestGateway(quickPolls, { jobDurationMs: 300 });

    const code = (blocks[index]?.code ?? '').replaceAll('localhost:4000', new URL(gateway.origin).host);
    const { stdout } =
      blocks[index]?.language === 'sh'
        ? await run('sh', ['-c', code.replace('curl', 'curl -s')])
        : await run(process.execPath, ['--input-type=module', '-e', code], { cwd: root });
    expect(stdout.match(/PROCESSING|COMPLETED/g)).toEqual(['PROCESSING', 'COMPLETED']);
  });
});

describe('The typed client', () => {
  it('follows a taxpayer to the end as its README shows', async () => {
    const gateway = await startTestGateway();

    const code =
      page('../packages/client/README.md')[1]?.code.replaceAll('localhost:4000', new URL(gateway.origin).host) ?? '';
    const cwd = join(root, 'packages/client');
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd });
    expect(stdout).toMatch(/^COMPLETED/);
  });
});
