import { afterEach, expect, it } from '@jest/globals';
import { environmentFor, startTestGateway } from '../support/gateway.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { runCommand } from '../support/runCommand.js';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** What a gateway with this CACHE_URL logs about its store, and what `check` says; it must serve all the same. */
async function causesOf(CACHE_URL: string) {
  const gateway = await startTestGateway({ CACHE_URL });
  stops.push(gateway.stop);
  const id = gateway.sandbox.demo.taxpayerIds.authorized;
  const { data, errors } = await gateway.query(`{ taxpayerToken(taxpayerId: "${id}") { status } }`);
  expect({ data, errors }).toEqual({ data: { taxpayerToken: { status: 'AUTHORIZED' } }, errors: undefined });
  const lines = gateway.logs.map((line) => JSON.parse(line)).filter(({ store }) => store !== undefined);
  expect(lines.map(({ msg }) => msg)).toEqual([expect.stringMatching(/^the store of CACHE_URL cannot be used/)]);
  const { code, stdout, stderr } = await runCommand({ ...environmentFor(gateway.sandbox), CACHE_URL }, ['check']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  return { logged: lines[0].cause, checked: /^FAILED {2}store: CACHE_URL \(.*?\): (.*)$/m.exec(stdout)?.[1] };
}

async function redis(args: readonly string[] = []): Promise<TestRedis> {
  const server = await startRedis({ args });
  stops.push(server.stop);
  return server;
}

it('A database number that Redis does not have is told, and nothing is written to another', async () => {
  const server = await redis();
  const cause = 'Redis has no database of this number (ERR DB index is out of range)';
  expect(await causesOf(`${server.url}/99`)).toEqual({ logged: cause, checked: cause });
  expect(await server.keys()).toEqual([]);
});

it('A user who may not SELECT the database is told, and nothing is written to another', async () => {
  const server = await redis();
  await server.command('ACL', 'SETUSER', 'app', 'on', '>planted-password', '~*', '&*', '+@all', '-select');
  const cause = 'Redis does not permit the command (NOPERM select)';
  const found = await causesOf(`redis://app:planted-password@127.0.0.1:${server.port}/1`);
  expect(found).toEqual({ logged: cause, checked: cause });
  expect(await server.keys()).toEqual([]);
});
