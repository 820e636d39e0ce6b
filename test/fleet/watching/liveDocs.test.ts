import { startTestGateway } from '../../support/gateway.js';
import { quickPolls } from '../../support/liveJob.js';
import { codeBlocks, read } from '../../support/repository.js';
import { run } from '../../support/run.js';

const runScript = (code: string, cwd: string) => run(process.execPath, ['--input-type=module', '-e', code], { cwd });

describe('docs/live-updates.md', () => {
  const blocks = codeBlocks(read('docs/live-updates.md'));

  it('has the blocks that are tried below, and no others', () => {
    expect(blocks.map(({ language }) => language)).toEqual(['sh', 'js']);
  });

  it.each([0, 1])('follows a job to its end in block %d', async (index) => {
    const gateway = await startTestGateway(quickPolls, { jobDurationMs: 300 });

    const code = (blocks[index]?.text ?? '').replaceAll('localhost:4000', new URL(gateway.origin).host);
    const { stdout } =
      blocks[index]?.language === 'sh'
        ? await run('sh', ['-c', code.replace('curl', 'curl -s')])
        : await runScript(code, '.');
    expect(stdout.match(/PROCESSING|COMPLETED/g)).toEqual(['PROCESSING', 'COMPLETED']);
  });
});

it('The typed client follows a taxpayer to the end as its README shows', async () => {
  const gateway = await startTestGateway();

  const [, { text } = { text: '' }] = codeBlocks(read('packages/client/README.md'));
  const code = text.replaceAll('localhost:4000', new URL(gateway.origin).host);
  const { stdout } = await runScript(code, 'packages/client');
  expect(stdout).toMatch(/^COMPLETED/);
});
