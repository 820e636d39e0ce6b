import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Environment,
  entry,
  environmentFor,
  type GatewayProcess,
  postQuery,
  spawnGateway,
  startTrustedProvider,
  type TrustedProvider,
} from '../../support/gateway.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { read } from '../../support/repository.js';
import { run } from '../../support/run.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';

const questions = [
  ...read('docs/runbook.md').matchAll(/^## (.*)\n[\s\S]*?^```bash\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm),
].map(([, question = '', commands = '', output = '']) => ({ question, commands, output }));

/** What differs from one run to the next: hashes, request ids, times, numbers, addresses. */
const withoutChance = (text: string) =>
  text
    .replace(/[\w-]{8}-[\w-]{4}-[\w-]{4}-[\w-]{4}-[\w-]{12}/g, '<request>')
    .replace(/(?<![\w-])[\w-]{43}(?![\w-])/g, '<hash>')
    .replace(/\b[0-9a-f]{64}\b/g, '<digest>')
    .replace(/(?<=(?:version|job) )[\w-]{12}(?![\w-])/g, '<hash>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/https?:\/\/[\w.:]+\/?/g, '<address>')
    .replace(/\b\d+ keys?$/m, '2 keys')
    .replace(/"version":"[^"]*"/, '"version":<version>')
    .replace(/\b\d+(\.\d+)?(?:e\+\d+)?\b/g, '<number>');

let sandbox: Sandbox;
let redis: TestRedis;
let identityProvider: TrustedProvider;
let gateway: GatewayProcess;
let env: Environment;
const directory = scratch();

beforeAll(async () => {
  [redis, sandbox, identityProvider] = await Promise.all([startRedis(), startSandbox(), startTrustedProvider()]);
  env = {
    ...environmentFor(sandbox),
    ...identityProvider.env,
    CACHE_URL: redis.url,
    RATE_LIMIT_PER_MINUTE: '3',
    AUDIT: 'all',
    TRUSTED_DOCUMENTS_FILE: join(directory, 'persisted-documents.json'),
    TRUSTED_DOCUMENTS_MODE: 'report',
  };
  writeFileSync(env['TRUSTED_DOCUMENTS_FILE'] ?? '', '{}');
  const { taxpayerId, jobId } = sandbox.demo.jobs.completed;
  const token = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
  const job = `{ refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status } }`;
  const asker = async (sub: string, client: string) => {
    const scope = 'taxpayers:read refresh-jobs:read taxpayers:any';
    const authorization = `Bearer ${await identityProvider.token({ sub, scope })}`;
    const headers = { authorization, 'apollographql-client-name': client, 'apollographql-client-version': '2.1' };
    return (query: string) => postQuery(gateway.origin, query, query === token ? { id: taxpayerId } : {}, headers);
  };

  // A first run, whose log ends with its process: what is combined with other lines is in it.
  gateway = await spawnGateway(env);
  const [web, batch] = [await asker('grace', 'web'), await asker('batch-job', 'nightly')];
  sandbox.setLatency(1200);
  expect((await web(token)).errors).toBeUndefined();
  sandbox.setLatency(0);
  expect((await web(job)).errors).toBeUndefined();
  for (let n = 0; n < 3; n++) expect((await batch(token)).errors).toBeUndefined();
  // The minute may end meanwhile.
  for (let refused = 0; refused < 3; ) if ((await batch(token)).status === 429) refused += 1;
  await gateway.stop();
  const firstLog = gateway.output();
  gateway = await spawnGateway(env);
  const log = join(directory, 'gateway.log');
  writeFileSync(log, firstLog + gateway.output());
  gateway.child.stdout?.on('data', (text) => appendFileSync(log, text));
});

/** Runs the commands as an operator would, with what they name replaced by what is here. */
async function runHere(commands: string) {
  const here = commands
    .replaceAll('npx taxpayer-gateway', `node ${entry}`)
    .replaceAll('http://localhost:4000', gateway.origin)
    .replaceAll('https://id.example/', identityProvider.issuer)
    .replaceAll('-d yesterday', '-d today');
  const options = { cwd: directory, env: { ...process.env, ...env } };
  return (await run('sh', ['-c', `set -e; ${here}`], options)).stdout;
}

it('has nine questions', () => {
  expect(questions).toHaveLength(9);
});

describe.each(questions)('$question', ({ commands, output }) => {
  it('is answered by what the page says, and the answer looks like the one on the page', async () => {
    const answer = await runHere(commands);
    expect(withoutChance(answer).trimEnd()).toBe(withoutChance(output).trimEnd());
    expect(answer).not.toMatch(/not real|sandbox-token|grace|batch-job/);
  }, 30_000);
});

it('finds every call to the token endpoint, by caller', async () => {
  const { commands = '' } = questions.find(({ question }) => question === 'Who uses up the token budget?') ?? {};
  const found = (await runHere(commands)).trim().split('\n').slice(1);
  expect(found.map((line) => JSON.parse(line).tokenCalls)).toEqual([sandbox.counters().taxpayerToken]);
});
