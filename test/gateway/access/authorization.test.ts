import { allScopes } from '../../../src/auth/caller.js';
import { type Answer, codesOf, linesWith, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { schema } from '../../support/schema.js';
import { type Path, pathsOf, taxpayerTypes } from '../../support/schemaPaths.js';
import { eventReader, postEvents } from '../../support/streamReader.js';

// The paths are read from the schema, so a new root field or path to a taxpayer is tested as soon as it exists: each has to
// refuse callers without the scope or the taxpayer, before any call, and alike whether the taxpayer exists or not.

const everyPath = pathsOf(schema);
const paths = everyPath.filter(({ isOfTaxpayer }) => isOfTaxpayer);
const everyScope = allScopes.filter((scope) => scope !== 'taxpayers:any');

const existing = 'taxpayer-that-exists';
const missing = 'taxpayer-that-does-not';
const own = 'taxpayer-of-the-caller';
/** No text that a hash or a request id may hold by chance. */
const subject = 'Ada Lovelace';

const provider = await startTrustedProvider();
const gateway = await startTestGateway(provider.env);
for (const id of [existing, own]) {
  gateway.sandbox.addTaxpayer({ id, name: `Name of ${id}` });
  gateway.sandbox.addJob({ taxpayerId: id, jobId: 'job', name: `Job of ${id}`, status: 'completed' });
}

beforeEach(() => {
  gateway.sandbox.resetCounters();
});

describe('the root fields, and the paths to a taxpayer', () => {
  test('reach every taxpayer-bearing type, by root fields, nested fields and _entities', () => {
    const names = paths.map(({ name }) => name).join('\n');
    const types = taxpayerTypes(schema);
    expect(types.length).toBeGreaterThanOrEqual(3);
    for (const type of types) expect(names).toMatch(new RegExp(`^Query\\.[a-z].*: ${type}$`, 'm'));
    for (const type of types) expect(names).toMatch(new RegExp(`^Query\\._entities.*: ${type}$`, 'm'));
    expect(names).toContain('Query.taxpayer(id: $taxpayerId).token.taxpayer.refreshJob(jobId: $jobId): RefreshJob');
    expect(names).toContain('waitSeconds');
    const isOpen = ({ name, scopes }: Path) => scopes.length === 0 && !name.startsWith('Query._entities');
    expect(everyPath.filter(isOpen)).toEqual([]);
  });

  test('each answers the caller who may', async () => {
    await expectOfEach(paths, async (path) => {
      expect(errorsOf(await ask(path, own, await tokenFor(everyScope, [own])))).toEqual([]);
    });
  });

  test('each refuses a caller without the taxpayer, alike whether it exists, before any call', async () => {
    await expectOfEach(paths, async (path) => {
      const token = await tokenFor(everyScope, [own]);
      const answers = [await ask(path, existing, token), await ask(path, missing, token)];
      for (const answer of answers) expectForbidden(answer);
      expect(comparable(answers[0])).toEqual(comparable(answers[1]));
    });
    expect(gateway.sandbox.requests()).toEqual([]);
  });

  test('each refuses a caller without any scope before any call', async () => {
    await expectOfEach(everyPath, async (path) =>
      expectForbidden(await ask(path, existing, await tokenFor([], [existing]))),
    );
    expect(gateway.sandbox.requests()).toEqual([]);
  });

  test('each refuses a caller who lacks one scope of those published for it', async () => {
    await expectOfEach(everyPath, async (path) => {
      for (const scope of path.scopes) {
        const others = everyScope.filter((candidate) => candidate !== scope);
        expectForbidden(await ask(path, existing, await tokenFor(others, [existing])));
      }
    });
  });

  test('each refuses a caller without a token before any call', async () => {
    await expectOfEach(everyPath, async (path) => {
      const answer = await ask(path, existing, undefined);
      expect(answer).toMatchObject({ status: 401 });
      expect(codesOf(answer)).toEqual(['UNAUTHENTICATED']);
    });
    expect(gateway.sandbox.requests()).toEqual([]);
  });

  test('each mutation leaves an audit line, whatever came of it', async () => {
    const mutations = everyPath.filter(({ operation }) => operation === 'mutation');
    await expectOfEach(mutations, async (path) => {
      const { headers } = await ask(path, own, await tokenFor(everyScope, [own]));
      expect(linesWith(gateway.logs, { level: 'audit', requestId: headers.get('x-request-id') })).toHaveLength(1);
    });
  });
});

describe('what is shared between callers', () => {
  const record = 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';

  test('a caller cannot join a read that another caller began', async () => {
    const { sandbox } = gateway;
    const { id } = sandbox.addTaxpayer({ name: 'In flight' });
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: 'flight' } });
    const flight = send(record, { id }, await tokenFor(everyScope, [id]));
    await sandbox.whenCalled('taxpayerToken', 1);
    expectForbidden(await send(record, { id }, await tokenFor(everyScope, [own]))); // while that read is still held
    sandbox.disarmAll();
    sandbox.release('flight');
    expect((await flight).data).toEqual({ taxpayerToken: { name: 'In flight' } });
    expect(sandbox.tokenCalls(id)).toBe(1);
  });

  test('a link that one caller created is not replayed to another with the same key, and each leaves an audit line', async () => {
    const create = 'mutation { createClientLink(input: { idempotencyKey: "one" }) { clientLink { id } replayed } }';
    const before = gateway.logs.length;
    for (const sub of ['one', 'another']) {
      const { data } = await send(create, {}, await provider.token({ sub, scope: 'client-links:create' }));
      expect(data).toMatchObject({ createClientLink: { replayed: false } });
    }
    const audits = linesWith(gateway.logs.slice(before), { audit: 'client-link-requested' });
    expect(audits).toMatchObject(Array(2).fill({ outcome: 'created', callerKind: 'bearer' }));
  });

  test('an alias or a fragment gets around no check, also for a cached record, and what is allowed is still answered', async () => {
    expect(errorsOf(await send(record, { id: existing }, await tokenFor(everyScope, [existing])))).toEqual([]);
    const document = `query($own: ID!, $other: ID!) { mine: taxpayerToken(taxpayerId: $own) { name } ...F }
      fragment F on Query { theirs: taxpayerToken(taxpayerId: $other) { name } }`;
    const answer = await send(document, { own, other: existing }, await tokenFor(everyScope, [own]));
    expect(answer.data).toEqual({ mine: { name: `Name of ${own}` }, theirs: null });
    expect(errorsOf(answer)).toEqual([{ path: ['theirs'], code: 'FORBIDDEN' }]);
  });
});

/** Goes on past a path that fails, so that the message lists all of them. */
async function expectOfEach(all: readonly Path[], check: (path: Path) => Promise<void>) {
  const failed: string[] = [];
  for (const path of all) {
    await check(path).catch((error: Error) => failed.push(`${path.name}\n${error.message}`));
  }
  expect(failed).toEqual([]);
}

function tokenFor(scopes: readonly string[], taxpayers: readonly string[]) {
  // Another caller each time: one who asks so often would use up its share of the gateway's time.
  const sub = `${subject} ${crypto.randomUUID()}`;
  return provider.token({ sub, scope: scopes.join(' '), taxpayer_ids: taxpayers });
}

function send(document: string, variables: object, token: string | undefined): Promise<Answer> {
  return gateway.query(document, variables, token === undefined ? {} : { authorization: `Bearer ${token}` });
}

function ask(path: Path, taxpayerId: string, token: string | undefined): Promise<Answer> {
  const run = path.operation === 'subscription' ? firstEvent : send;
  return run(path.document, path.variables(taxpayerId), token);
}

/** The first event of a subscription over server-sent events, as an answer. */
async function firstEvent(query: string, variables: object, token: string | undefined): Promise<Answer> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await postEvents(gateway, { query, variables }, headers);
  const common = { status: response.status, headers: response.headers };
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    return { ...common, ...((await response.json()) as object) };
  const events = eventReader(response);
  const first = await events.next();
  await events.cancel();
  return { ...common, ...(first?.data as object) };
}

function errorsOf({ errors = [] }: Answer) {
  return errors.map(({ path, extensions }) => ({ path, code: extensions.code }));
}

/** Everything asked for is refused: nothing of a record is in the answer. */
function expectForbidden(answer: Answer) {
  expect(codesOf(answer).length).toBeGreaterThan(0);
  expect(new Set(codesOf(answer))).toEqual(new Set(['FORBIDDEN']));
  expect(JSON.stringify(answer.data ?? null)).not.toMatch(/Name of|Job of/);
}

/** An answer without what differs from request to request. */
function comparable(answer: Answer | undefined) {
  const { data, errors, status } = answer ?? {};
  return {
    status,
    data,
    errors: errors?.map((error) => ({ ...error, extensions: { ...error.extensions, requestId: '' } })),
  };
}
