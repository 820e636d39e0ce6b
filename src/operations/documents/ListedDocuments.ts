import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { stripIgnoredCharacters } from 'graphql';
import * as z from 'zod';
import { withoutByteOrderMark } from '../../json.js';
import { clientOf } from '../clientName.js';

interface ListedDocument {
  readonly id: string;
  readonly body: string;
  /** The only client that may use the document; any client if absent. */
  readonly clientName?: string | null | undefined;
}

const filled = z.string().min(1);

/** The format of Apollo's tools. */
const apolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: filled, body: filled, clientName: z.string().nullish() })),
});

/** The format of GraphQL Code Generator and Relay. */
const textsByHash = z.record(filled, filled);

/** After so many documents, reading yields to the event loop. */
const documentsPerTurn = 100;

/** The same texts by id, and by their original and their normalised text. */
interface OneList {
  readonly byId: Map<string, string>;
  readonly byText: Map<string, string>;
}

/** A longer text is compared without normalising it, which takes time: it is hardly a listed document. */
const longestLayout = { characters: 10_000, timesTheLongest: 10 };

/** The listed documents. A request names one by its id, by its text in any layout, or by both if they agree. */
export class ListedDocuments {
  /** By the client that a list is for; the key undefined stands for any client. */
  readonly #byClient = new Map<string | undefined, OneList>();
  /** Characters of the longest text. */
  #longest = 0;
  size = 0;

  /** Adds a document, or returns what is wrong with it. */
  add({ id, body, clientName }: ListedDocument): string | undefined {
    const normal = normalised(body);
    if (normal === undefined) return 'holds a document that is not GraphQL';
    const { client } = clientOf({ 'apollographql-client-name': clientName });
    if (clientName && client === undefined) return 'has a clientName without a plain character';
    const { byId, byText } = this.#byClient.get(client) ?? { byId: new Map(), byText: new Map() };
    this.#byClient.set(client, { byId, byText });
    const text = byText.get(normal) ?? body;
    if ((byId.get(id) ?? text) !== text) return 'gives one id to two documents';
    if (!byId.has(id)) this.size += 1;
    byId.set(id, text);
    byText.set(normal, text).set(body, text);
    this.#longest = Math.max(this.#longest, body.length);
    return undefined;
  }

  find(id: string | undefined, query: string | undefined, client: string | undefined): string | undefined {
    const ofClient = client === undefined ? undefined : this.#byClient.get(client);
    const ofAll = this.#byClient.get(undefined);
    const find = (text: string | undefined) => findIn(ofClient, id, text) ?? findIn(ofAll, id, text);
    const found = find(query);
    if (found !== undefined || query === undefined) return found;
    const { characters, timesTheLongest } = longestLayout;
    if (query.length > Math.max(characters, timesTheLongest * this.#longest)) return undefined;
    const normal = normalised(query);
    return normal === undefined ? undefined : find(normal);
  }
}

/** The text that `id` or `text` names; given both, only if they name the same. */
function findIn(list: OneList | undefined, id: string | undefined, text: string | undefined): string | undefined {
  const byId = id === undefined ? undefined : list?.byId.get(id);
  if (text === undefined) return byId;
  const byText = list?.byText.get(text);
  return id === undefined || byId === byText ? byText : undefined;
}

/** The text without ignored characters, such as white space and comments; undefined if it is not GraphQL. */
function normalised(text: string): string | undefined {
  try {
    return stripIgnoredCharacters(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads the files, and the .json files of the folders, in `paths`: each an Apollo manifest or a map from hash to text.
 * @throws Error in one line that names TRUSTED_DOCUMENTS_FILE and the file
 */
export async function readListedDocuments(paths: readonly string[]): Promise<ListedDocuments> {
  const listed = new ListedDocuments();
  for (const path of paths) {
    const files = await filesOf(path).catch((error) => fail(unreadable(error), path));
    if (files.length === 0) fail('is a folder without a .json file', path);
    for (const file of files) await addFile(listed, file);
  }
  return listed;
}

async function addFile(listed: ListedDocuments, file: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch((error) => fail(unreadable(error), file));
  let added = 0;
  for (const document of documentsIn(text, file)) {
    const problem = listed.add(document);
    if (problem !== undefined) fail(`${problem}, see ${JSON.stringify(document.id.slice(0, 100))}`, file);
    added += 1;
    if (added % documentsPerTurn === 0) await turn();
  }
}

function documentsIn(text: string, file: string): readonly ListedDocument[] {
  let json: unknown;
  try {
    json = JSON.parse(withoutByteOrderMark(text));
  } catch {
    return fail('is not JSON', file);
  }
  const isManifest = typeof json === 'object' && json !== null && ('format' in json || 'operations' in json);
  const parsed = isManifest ? apolloManifest.safeParse(json) : textsByHash.safeParse(json);
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.').slice(0, 100) || 'the whole';
    return fail(`is neither Apollo's persisted-query manifest nor { hash: text }, see ${place}`, file);
  }
  const { data } = parsed;
  return isManifest
    ? (data as z.output<typeof apolloManifest>).operations
    : Object.entries(data as Record<string, string>).map(([id, body]) => ({ id, body }));
}

/**
 * A text that changes when a listed file does: names, sizes and times, because reading the files every second costs more.
 */
export async function stateOfLists(paths: readonly string[]): Promise<Buffer> {
  const states: string[] = [];
  for (const path of paths) {
    try {
      for (const file of await filesOf(path)) {
        const now = await stat(file);
        // A pipe, such as a shell's `<(command)`, can be read only once: it must not count as changed.
        states.push(now.isFile() ? `${file} ${now.ino} ${now.size} ${now.ctimeMs}` : file);
      }
    } catch (error) {
      states.push(`${path} ${unreadable(error)}`);
    }
  }
  return Buffer.from(states.join('\n'));
}

/** A folder's .json files, without the hidden ones: Kubernetes keeps the files that it links to among those. */
async function filesOf(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = await readdir(path);
  const lists = names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  return lists.sort().map((name) => join(path, name));
}

function unreadable(error: unknown): string {
  return `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`;
}

function fail(problem: string, path: string): never {
  throw new Error(`TRUSTED_DOCUMENTS_FILE ${problem}: ${path}`);
}
