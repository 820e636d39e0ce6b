import { hash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { stripIgnoredCharacters } from 'graphql';
import * as z from 'zod';
import { follow, withoutByteOrderMark } from '../process/files.js';
import { badRequest, type GraphQLRequest } from './GraphQLRequest.js';
import type { OperationFacts, OperationsOptions } from './Operation.js';

/** The documents of TRUSTED_DOCUMENTS_FILE, read again when they change. */
export class TrustedDocuments {
  /** As last read. */
  listed = new Listed();

  constructor(
    private readonly paths: readonly string[],
    private readonly options: OperationsOptions,
  ) {}

  /** Whether documents that are not listed may run, and are reported. */
  get onlyReports(): boolean {
    return this.options.config.TRUSTED_DOCUMENTS_MODE === 'report';
  }

  /** @throws Error in one line that names TRUSTED_DOCUMENTS_FILE */
  async start(): Promise<void> {
    const { paths, options } = this;
    const take = async () => {
      const listed = await readListed(paths);
      const isSame = isDeepStrictEqual(listed.byId, this.listed.byId);
      this.listed = listed;
      return isSame ? undefined : { setting: 'TRUSTED_DOCUMENTS_FILE', documents: listed.byId.size };
    };
    await take();
    follow({ ...options, paths, take });
  }

  /**
   * Logs a document that runs although it is not listed, because the mode is `report`: by its SHA-256 in hexadecimal, as Apollo's
   * clients name it, unless it {@link holdsValues}. `operation`: see {@link operationLabel}.
   */
  report(query: string, operation: string, { requestId, client }: OperationFacts): void {
    const named = holdsValues.test(query) ? undefined : hash('sha256', query);
    this.options.lines.pass({
      level: 'warn',
      message: 'untrusted document',
      requestId,
      common: { hash: named, operation, ...client },
      general: { operation },
    });
  }
}

/**
 * The text of the document to run: the request's own, or the listed one with its id. An id is a `documentId`, or a
 * `persistedQuery.sha256Hash` as Apollo's clients send it. `isTrusted`: whether the document may run without a report.
 * @throws GatewayError BAD_USER_INPUT
 */
export function documentOf({ query, documentId, extensions }: GraphQLRequest, trusted: TrustedDocuments | undefined) {
  if (query !== undefined) {
    const isTrusted = trusted === undefined || trusted.listed.has(query);
    if (isTrusted || trusted.onlyReports) return { text: query, isTrusted };
    throw badRequest('This is not a trusted document: only those of TRUSTED_DOCUMENTS_FILE may run here');
  }
  const { sha256Hash } = (extensions['persistedQuery'] ?? {}) as { readonly sha256Hash?: unknown };
  const text = trusted?.listed.withId(documentId ?? sha256Hash);
  if (text !== undefined) return { text, isTrusted: true };
  // Apollo's own message for a request with only a hash: its clients then send the text.
  if (sha256Hash) throw badRequest('PersistedQueryNotSupported', 200);
  const unknownId = 'This id is not that of a trusted document (TRUSTED_DOCUMENTS_FILE)';
  throw badRequest(documentId ? unknownId : 'The request must have a query');
}

/** A string, a comment or a number. A hash does not hide a short value such as an SSN: anybody can try them all. */
const holdsValues = /["#]|(?<![\w$])\d/;

/** A longer text is not looked for in another layout: to normalise one of MAX_BODY_BYTES takes 150 ms. */
const longestLayout = 20_000;

class Listed {
  /** The text of each document. */
  readonly byId = new Map<string, string>();
  /** The texts, as they are listed and normalised. */
  readonly #texts = new Set<string>();

  /** @throws Error that says what is wrong with the document */
  add(id: string, body: string): void {
    const normal = normalised(body);
    if (normal === undefined) throw problemOf(id, 'holds a document that is not GraphQL');
    const known = this.byId.get(plainId(id)) ?? body;
    if (known !== body && normalised(known) !== normal) throw problemOf(id, 'gives one id to two documents');
    this.byId.set(plainId(id), body);
    this.#texts.add(body).add(normal);
  }

  /** The text of the document with this id. */
  withId(id: unknown): string | undefined {
    return typeof id === 'string' ? this.byId.get(plainId(id)) : undefined;
  }

  /** Whether a text, in any layout, is that of a document. */
  has(query: string): boolean {
    return this.#texts.has(query) || (query.length <= longestLayout && this.#texts.has(normalised(query) ?? ''));
  }
}

/** An id that is a hash has this prefix in GraphQL over HTTP (Persisted Documents), and in the lists of some tools. */
const plainId = (id: string): string => id.replace(/^sha256:/, '');

const problemOf = (id: string, words: string) => new Error(`${words}, see ${JSON.stringify(id.slice(0, 100))}`);

/** The text without ignored characters, such as white space and comments; undefined if it is not GraphQL. */
function normalised(text: string): string | undefined {
  try {
    return stripIgnoredCharacters(text);
  } catch {
    return undefined;
  }
}

const filled = z.string().min(1);

/** The format of Apollo's tools. A `clientName` is not read: a client chooses its name, so it would prove nothing. */
const apolloManifest = z
  .object({
    format: z.literal('apollo-persisted-query-manifest'),
    version: z.literal(1),
    operations: z.array(z.object({ id: filled, body: filled })),
  })
  .transform(({ operations }) => operations.map(({ id, body }) => [id, body] as const));

/** The format of GraphQL Code Generator and Relay. */
const textsByHash = z.record(filled, filled).transform((texts) => Object.entries(texts));

/**
 * Reads the files, and the .json files of the folders, in `paths`: each an Apollo manifest or a map from hash to text.
 * @throws Error in one line that names TRUSTED_DOCUMENTS_FILE and the file
 */
export async function readListed(paths: readonly string[]): Promise<Listed> {
  const listed = new Listed();
  for (const path of paths) {
    for (const file of await filesOf(path).catch(failing(path))) await addFile(listed, file).catch(failing(file));
  }
  return listed;
}

/** A file itself, or a folder's .json files. Hidden ones are left out: Kubernetes mounts files as links into hidden folders. */
async function filesOf(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = await readdir(path);
  const lists = names.filter((name) => name.endsWith('.json') && !name.startsWith('.'));
  if (lists.length === 0) throw new Error('is a folder without a .json file');
  return lists.sort().map((name) => join(path, name));
}

async function addFile(listed: Listed, file: string): Promise<void> {
  const json: unknown = JSON.parse(withoutByteOrderMark(await readFile(file, 'utf8')));
  const { data } = z.union([apolloManifest, textsByHash]).safeParse(json);
  if (data === undefined) throw new Error("is neither Apollo's persisted-query manifest nor { hash: text }");
  for (const [id, body] of data) listed.add(id, body);
}

/** Returns a function that rethrows an error about a file in one line: with our words, or with a file-system error's code. */
function failing(path: string) {
  return (error: NodeJS.ErrnoException): never => {
    let problem = error.message;
    if (error instanceof SyntaxError) problem = 'is not JSON';
    if (error.code) problem = `cannot be read (${error.code})`;
    throw new Error(`TRUSTED_DOCUMENTS_FILE ${problem}: ${path}`);
  };
}
