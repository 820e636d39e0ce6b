import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { linesWith, post, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

let directory: string;
let gateway: TestGateway;
beforeEach(() => {
  directory = scratch();
});

/** As a deployment does it: whole, by a new name. */
function write(name: string, content: unknown) {
  const file = join(directory, name);
  writeFileSync(`${file}.new`, typeof content === 'string' ? content : JSON.stringify(content));
  renameSync(`${file}.new`, file);
  return file;
}

/** A document, by what it calls its only field. */
const named = (name: string) => `query ${name} { ${name}: __typename }`;
const digest = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');
const manifestOf = (...operations: readonly object[]) => ({
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations,
});
const listed = (name: string) => ({
  id: digest('sha256', named(name)),
  name,
  type: 'query',
  body: named(name),
});

function linkToItself() {
  symlinkSync('a.json', join(directory, 'loop'));
  renameSync(join(directory, 'loop'), join(directory, 'a.json'));
}

async function send(body: object, client?: string) {
  const response = await post(`${gateway.origin}/graphql`, body, {
    ...(client && { 'apollographql-client-name': client }),
  });
  return { status: response.status, ...((await response.json()) as { data?: object; errors?: { message: string }[] }) };
}
const runs = async (body: object, client?: string) => (await send(body, client)).errors === undefined;

const linesOf = (msg: string) => linesWith(gateway.logs, { msg });
const readAgain = () => linesOf('a changed file was read again');
const refused = () => linesOf('a changed file cannot be used: what was read before stays in use');

describe('Lists of trusted documents', () => {
  it('may be manifests of Apollo and maps of code generation and Relay, in files and folders at once', async () => {
    const folder = join(directory, 'lists');
    mkdirSync(folder);
    const idOfB = `sha256:${digest('sha256', named('B'))}`;
    // As Kubernetes mounts a ConfigMap: the names link to a hidden folder, which is replaced as a whole.
    mkdirSync(join(folder, '..2026'));
    writeFileSync(join(folder, '..2026', 'codegen.json'), JSON.stringify({ [idOfB]: named('B') }));
    symlinkSync('..2026', join(folder, '..data'));
    symlinkSync('..data/codegen.json', join(folder, 'codegen.json'));
    writeFileSync(join(folder, 'notes.txt'), 'not a list');
    writeFileSync(join(folder, 'relay.json'), JSON.stringify({ [digest('md5', named('C'))]: named('C') }));
    const apollo = write('apollo.json', manifestOf(listed('A')));
    // The same document twice, laid out differently, is no contradiction.
    const again = write('again.json', { 'a-of-another-tool': named('A').replace('{', '\n{\n') });
    gateway = await startTestGateway({ TRUSTED_DOCUMENTS_FILE: `${apollo}, ${folder},${again}` });

    const ids = { A: digest('sha256', named('A')), B: idOfB, C: digest('md5', named('C')) };
    for (const [name, id] of Object.entries(ids)) {
      const answer = { status: 200, data: { [name]: 'Query' } };
      expect(await send({ documentId: id })).toEqual(answer);
      expect(await send({ query: named(name) })).toEqual(answer);
      expect(await send({ query: named(name), extensions: { persistedQuery: { sha256Hash: id } } })).toEqual(answer);
    }
    for (const documentId of [`sha256:${ids.A}`, idOfB.slice(7)]) expect(await runs({ documentId })).toBe(true);
    expect(await runs({ query: named('A'), documentId: 'a-of-another-tool' })).toBe(true);
    expect(await runs({ query: named('D') })).toBe(false);
  });

  it('are read again when they change, under load and without a refusal of what stays listed', async () => {
    const folder = join(directory, 'lists');
    mkdirSync(folder);
    write('lists/stays.json', manifestOf(listed('Stays')));
    write('lists/goes.json', { goes: named('Goes') });
    gateway = await startTestGateway({ TRUSTED_DOCUMENTS_FILE: folder });
    const listedById = { documentId: listed('Stays').id };
    let isOver = false;
    const statuses = new Set<number>();
    const load = times(8, async (n) => {
      while (!isOver) statuses.add((await send(n % 2 ? { query: named('Stays') } : listedById)).status);
    });
    expect(await runs({ documentId: 'comes' })).toBe(false);
    expect(await runs({ documentId: 'goes' })).toBe(true);

    write('lists/comes.json', {
      comes: named('Comes'),
      // enough to be read in several turns
      ...Object.fromEntries(times(1000, (n) => [`more${n}`, named(`More${n}`)])),
    });
    unlinkSync(join(folder, 'goes.json'));
    await until(() => runs({ documentId: 'comes' }));
    expect(await runs({ documentId: 'goes' })).toBe(false);
    expect(readAgain()).toMatchObject([{ level: 'info', documents: 1002 }]);
    isOver = true;
    await Promise.all(load);
    expect([...statuses]).toEqual([200]);
  });

  it.each<[string, () => void, RegExp]>([
    ['is not JSON', () => write('a.json', '{'), /is not JSON: .*a\.json$/],
    ['is gone', () => unlinkSync(join(directory, 'a.json')), /cannot be read \(ENOENT\): .*a\.json$/],
    ['links to itself', linkToItself, /cannot be read \(ELOOP\): .*a\.json$/],
  ])('that cannot be used change nothing: one that %s', async (_, spoil, problem) => {
    const paths = [write('a.json', { a: named('A') }), write('b.json', { b: named('B') })];
    gateway = await startTestGateway({ TRUSTED_DOCUMENTS_FILE: paths.join() });
    spoil();
    await until(() => refused().length > 0);
    expect(refused()).toMatchObject([{ level: 'warn', problem: expect.stringMatching(problem) }]);
    for (const documentId of ['a', 'b']) expect(await runs({ documentId })).toBe(true);

    write('a.json', { a: named('A'), c: named('C') });
    await until(() => runs({ documentId: 'c' }));
    expect(refused()).toHaveLength(1);
    expect(readAgain()).toMatchObject([{ documents: 3 }]);
  });
});

describe('TRUSTED_DOCUMENTS_MODE=report', () => {
  const planted = 'planted-in-a-variable';
  const unknown = 'query ($id: ID!) { taxpayer(id: $id) { id } }';
  beforeEach(async () => {
    const file = write('all.json', { a: named('A') });
    gateway = await startTestGateway({ TRUSTED_DOCUMENTS_FILE: file, TRUSTED_DOCUMENTS_MODE: 'report' });
  });

  it('lets unknown documents run, counts them, and tells each once a second by hash, client and operation', async () => {
    const ask = (client: string) => send({ query: unknown, variables: { id: planted } }, client);
    const answers = await Promise.all(times(20, () => ask('web')));
    expect(answers).toEqual(Array(20).fill({ status: 200, data: { taxpayer: { id: planted } } }));
    expect(await runs({ query: named('A') })).toBe(true);
    expect(await runs({ documentId: 'a' })).toBe(true);
    await ask('nightly');
    await gateway.stop();
    const lines = linesOf('untrusted document');
    const common = { level: 'warn', hash: digest('sha256', unknown), operation: 'taxpayer' };
    expect(lines).toEqual(expect.arrayContaining([expect.objectContaining({ ...common, client: 'nightly' })]));
    const ofWeb = lines.filter(({ client }) => client === 'web');
    expect(ofWeb.length).toBeLessThan(20);
    for (const line of lines) expect(line).toMatchObject(common);
    const told = ofWeb.reduce((sum, { count = 1 }) => sum + Number(count), 0);
    expect(told).toBe(20);
    expect(gateway.output()).not.toContain(planted);
  });

  it.each([
    ['a string', '{ value: "078-05-1120" }'],
    ['an integer', '{ value: 78051120 }'],
    ['the default of a variable', '$metadata', '($metadata: JSONObject = { value: "078-05-1120" })'],
    ['a comment', '$metadata # 078-05-1120\n', '($metadata: JSONObject)'],
  ])(
    'gives no hash of a document that holds an SSN as %s: who tries all would find it',
    async (_, value, more = '') => {
      const query = `mutation M${more} { createClientLink(input: { metadata: ${value} }) { replayed } }`;
      expect(await send({ query }, 'web')).toMatchObject({ status: 200 });
      await gateway.stop();
      const [line, ...rest] = linesOf('untrusted document');
      expect(rest).toEqual([]);
      expect(line).toMatchObject({ operation: 'createClientLink', client: 'web', requestId: expect.any(String) });
      expect(line).not.toHaveProperty('hash');
    },
  );

  it('tells Apollo’s clients to send the text of an id that is not listed, and refuses other ids', async () => {
    expect(await send({ extensions: { persistedQuery: { version: 1, sha256Hash: 'x' } } })).toMatchObject({
      status: 200,
      errors: [{ message: 'PersistedQueryNotSupported' }],
    });
    expect(await send({ documentId: 'x' })).toMatchObject({
      status: 400,
      errors: [{ message: expect.stringContaining('This id is not that of a trusted document') }],
    });
  });

  it('tells nothing of what is refused for another reason', async () => {
    expect(await runs({ query: '{ noSuchField }' })).toBe(false);
    await gateway.stop();
    expect(linesOf('untrusted document')).toEqual([]);
  });
});
