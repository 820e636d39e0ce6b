import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { stripIgnoredCharacters } from 'graphql';
import * as z from 'zod';
import { withoutByteOrderMark } from '../json.js';

interface ListedDocument {
  readonly id: string;
  readonly body: string;
}

const filled = z.string().min(1);

/** The format of Apollo's tools. A `clientName` is not read: a client chooses its name, so it would prove nothing. */
const apolloManifest = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: filled, body: filled })),
});

/** The format of GraphQL Code Generator and Relay. */
const textsByHash = z.record(filled, filled);

/** After so many documents, reading yields to the event loop. */
const documentsPerTurn = 100;

/**
 * A longer text is compared without normalising it, and so is hardly a listed document: to normalise one of MAX_BODY_BYTES
 * takes 150 ms, many times as long as the parser needs to find more than MAX_TOKENS in it.
 */
const longestLayout = { characters: 10_000, timesTheLongest: 10 };

/** The listed documents. A request names one by its id, by its text in any layout, or by both if they agree. */
export class ListedDocuments {
  readonly #byId = new Map<string, string>();
  /** By their original and their normalised text. */
  readonly #byText = new Map<string, string>();
  /** Characters of the longest text. */
  #longest = 0;

  get size(): number {
    return this.#byId.size;
  }

  /** Adds a document, or returns what is wrong with it. */
  add({ id, body }: ListedDocument): string | undefined {
    const normal = normalised(body);
    if (normal === undefined) return 'holds a document that is not GraphQL';
    const text = this.#byText.get(normal) ?? body;
    if ((this.#byId.get(id) ?? text) !== text) return 'gives one id to two documents';
    this.#byId.set(id, text);
    this.#byText.set(normal, text).set(body, text);
    this.#longest = Math.max(this.#longest, body.length);
    return undefined;
  }

  find(id: string | undefined, query: string | undefined): string | undefined {
    const byId = id === undefined ? undefined : this.#byId.get(id);
    if (query === undefined) return byId;
    const byText = this.#byText.get(query) ?? this.#byLayout(query);
    return id === undefined || byId === byText ? byText : undefined;
  }

  #byLayout(query: string): string | undefined {
    const { characters, timesTheLongest } = longestLayout;
    if (query.length > Math.max(characters, timesTheLongest * this.#longest)) return undefined;
    const normal = normalised(query);
    return normal === undefined ? undefined : this.#byText.get(normal);
  }
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
    if (added % documentsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
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
