import { connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { WebSocket } from 'ws';
import { quickPolls, startTestGateway } from '../../support/gateway.js';
import { addJob } from '../../support/liveJob.js';
import { codeBlocks, read } from '../../support/repository.js';
import { run } from '../../support/run.js';
import { serve } from '../../support/serve.js';

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

describe('A subscription by WebSocket outlives a gateway that is away for a moment', () => {
  /** A way to a gateway: its first connection is cut after a second, the second one refused. */
  const startWay = async ({ origin }: { readonly origin: string }) => {
    let connections = 0;
    const way = createServer((socket: Socket) => {
      connections += 1;
      if (connections === 2) return socket.destroy();
      const onward = connect(Number(new URL(origin).port), '127.0.0.1');
      pipeline(socket, onward, socket, () => {}); // the end of one ends the other
      if (connections === 1) setTimeout(() => socket.destroy(), 1000);
    });
    return serve(way);
  };

  it('in docs/live-updates.md', async () => {
    const way = await startWay(await startTestGateway(quickPolls, { jobDurationMs: 2000 }));
    const { text = '' } = codeBlocks(read('docs/live-updates.md'))[1] ?? {};
    const { stdout } = await runScript(text.replaceAll('localhost:4000', new URL(way).host), '.');
    expect(stdout.match(/PROCESSING|COMPLETED/g)?.at(-1)).toBe('COMPLETED');
  }, 30_000);

  it('in examples/web', async () => {
    const gateway = await startTestGateway(quickPolls);
    const origin = await startWay(gateway);
    Object.assign(globalThis, { location: { origin }, WebSocket });
    const { liveClient } = await import(`${process.cwd()}/examples/web/src/liveClient.ts`);
    const job = addJob(gateway);
    const query = `subscription { refreshJobUpdated(taxpayerId: "${job.taxpayerId}", jobId: "${job.jobId}") { status } }`;
    liveClient.on('closed', () => gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' }));
    const seen: string[] = [];
    for await (const { data } of liveClient.iterate({ query })) seen.push(data.refreshJobUpdated.status);
    expect(seen.at(-1)).toBe('COMPLETED');
  }, 30_000);
});

it('The typed client follows a taxpayer to the end as its README shows', async () => {
  const gateway = await startTestGateway();

  const [, { text } = { text: '' }] = codeBlocks(read('packages/client/README.md'));
  const code = text.replaceAll('localhost:4000', new URL(gateway.origin).host);
  const { stdout } = await runScript(code, 'packages/client');
  expect(stdout).toMatch(/^COMPLETED/);
});
