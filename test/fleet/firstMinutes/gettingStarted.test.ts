import { type GatewayProcess, postQuery, spawnGateway } from '../../support/gateway.js';
import { codeBlocks, read } from '../../support/repository.js';
import { run } from '../../support/run.js';
import { postEvents } from '../../support/streamReader.js';

const blocks = codeBlocks(read('docs/getting-started.md'));
const textsOf = (language: string) =>
  blocks.filter((block) => block.language === language).map(({ text }) => text.trim());
const sh = (command: string) => run('sh', ['-c', command]);

let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await spawnGateway({ PORT: '0', UPSTREAM_DEADLINE_MS: '3000' });
});

it('docs/getting-started.md has the blocks that are tried below, and no others', () => {
  const others = blocks.filter(({ language }) => !['bash', 'graphql'].includes(language));
  expect(others).toEqual([]);
  expect(textsOf('graphql')).toHaveLength(1);
});

it.each(textsOf('graphql'))('docs/getting-started.md has an operation that works: %s', async (query) => {
  const response = await postEvents(gateway, { query });
  const events = await response.text();
  expect(events).toContain('event: next');
  expect(events).toContain('"data":{');
  expect(events).not.toContain('"errors"');
});

it('docs/getting-started.md has a first query that is answered, and a command that prints a token', async () => {
  const [query = '', token = '', ...others] = textsOf('bash');
  expect(others).toEqual([]);
  const { stdout } = await sh(query.replace('http://localhost:4000', gateway.origin));
  expect(JSON.parse(stdout)).toMatchObject({ data: { taxpayerToken: { status: 'AUTHORIZED' } } });
  const printed = await sh(token);
  const claims = JSON.parse(Buffer.from(printed.stdout.split('.')[1] ?? '', 'base64url').toString());
  expect(claims).toMatchObject({ scope: 'taxpayers:read', taxpayer_ids: [expect.stringMatching(/^4{8}-/)] });
});

// Last: one of the taxpayers makes the service refuse all calls for a while.
it('docs/getting-started.md tells the errors of the demo taxpayers that fail', async () => {
  const rows = [...read('docs/getting-started.md').matchAll(/^- `([0-9a-f-]{36})`: (\w+)/gm)];
  const codeOf = async ([, id = '']: readonly string[]) => {
    const query = `{ refreshJob(taxpayerId: "${id}", jobId: "any") { status } }`;
    return (await postQuery(gateway.origin, query)).errors?.[0]?.extensions.code;
  };
  const [limited = [], ...others] = rows;
  const codes = await Promise.all(others.map(codeOf));
  expect([await codeOf(limited), ...codes]).toEqual(rows.map(([, , code]) => code));
  expect(rows).toHaveLength(4);
}, 60_000);
