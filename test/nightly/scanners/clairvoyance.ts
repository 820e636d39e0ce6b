import { ask, codesIn, type GraphQLBody, type Reply, type Target } from './Scan.js';

// How Clairvoyance (github.com/nikitastupin/clairvoyance) and the brute force of InQL (github.com/doyensec/inql) recover a
// schema that may not be introspected: they put words where a name belongs, and read the messages.

type Place = (words: readonly string[]) => string;

/** Where words are tried, some at once. Each document has a mistake besides: one that is right is answered, to whoever may see it. */
export const places: Readonly<Record<string, Place>> = {
  'root fields of queries': (words) => `query { ${words.join(' ')} }`,
  'root fields of mutations': (words) => `mutation { ${words.join(' ')} }`,
  'root fields of subscriptions': (words) => `subscription { ${words.join(' ')} }`,
  'fields with a selection': (words) => `query { ${each(words, (word) => `${word} { IAmWrongField }`)} }`,
  'fields of a type': (words) => `query { taxpayer(id: "1") { ${words.join(' ')} } }`,
  'fields of the type below': (words) => `query { taxpayer(id: "1") { token { ${words.join(' ')} IAmWrongField } } }`,
  arguments: (words) => `query { taxpayerToken(${each(words, (word) => `${word}: 7`)}) }`,
  'arguments that are null': (words) =>
    `query { taxpayerToken(${each(words, (word) => `${word}: null`)}) { __typename } }`,
  'members of an input': (words) =>
    `mutation { createClientLink(input: { ${each(words, (word) => `${word}: null`)} }) { IAmWrongField } }`,
  'types, by fragments': (words) =>
    `query { taxpayer(id: "1") { ${each(words, (word) => `... on ${word} { __typename IAmWrongField }`)} } }`,
  'types, by a fragment that stands first': (words) =>
    `${each(words, (word, i) => `fragment F${i} on ${word} { __typename }`)} { taxpayer(id: "1") { ${each(words, (_, i) => `...F${i}`)} IAmWrongField } }`,
  'types, by variables': (words) =>
    `query (${each(words, (word, i) => `$v${i}: ${word}`)}) { taxpayer(id: $v0) { IAmWrongField } }`,
  directives: (words) => `query { __typename ${each(words, (word) => `@${word}`)} }`,
};

function each(words: readonly string[], text: (word: string, index: number) => string): string {
  return words.map(text).join(' ');
}

/** Documents from whose errors the types of a field and of an argument are read. */
export const typeProbes: readonly Place[] = [
  ([field]) => `query { ${field} }`,
  ([field]) => `query { ${field} { IAmWrongField } }`,
  ...['42', '{}', '"42"', 'false', '____i_n_q_l____'].map(
    (value) =>
      ([field]: readonly string[]) =>
        `query { ${field}(taxpayerId: ${value}) }`,
  ),
  ([field]) => `query { ${field}(taxpayerI: 42) }`,
];

/** The forms of messages that the scanners read names from, of graphql-js and of others. */
const telling = [
  /Cannot query field ['"`]?\w+['"`]? on type ['"`]?(\w+)/,
  /Did you mean ([^?]+)\?/,
  /Field ['"`]?(\w+)['"`]? of type ['"`]?([\w[\]!]+)['"`]? must (?:not )?have a (?:sub )?selection/,
  /must not have a selection since type ['"`]?([\w[\]!]+)/,
  /argument ['"`]?(\w+)['"`]? of type ['"`]?([\w[\]!]+)['"`]? is required/,
  /Unknown (?:argument|type|directive) ['"`]?@?(\w+)/,
  /Expected type ['"`]?([\w[\]!]+)/,
  /Expected value of type ['"`]?([\w[\]!]+)/,
  /is not defined by type ['"`]?(\w+)/,
  /on type ['"`]?(\w+)/,
  /(?:can never be of type|is not valid on type|cannot represent|does not exist in) ['"`]?(\w+)/,
];

/** The messages of a reply that tell names. */
function told({ json }: Reply): readonly string[] {
  const messages = (json.errors ?? []).map(({ message }) => message);
  return messages.filter((message) => telling.some((form) => form.test(message)));
}

/** The words that a place tells to be names: by a message, or by a reply other than that to an invented word. */
export async function recovered(target: Target, place: Place, words: readonly string[]): Promise<readonly string[]> {
  const isTold = async (tried: readonly string[]) => {
    const reply = await ask(target, place(tried));
    return told(reply).length > 0 || shown(reply) !== shown(await ask(target, place(tried.map(invented))));
  };
  const found = (await isTold(words)) ? ['some of the words'] : [];
  for (const word of words) if (await isTold([word])) found.push(word);
  return found;
}

/** A name of the same length that no schema has. */
const invented = (word: string) => `Z${word.slice(1, -1)}z`;

/** A reply as a scanner compares it: without what differs anyway. */
function shown(reply: Reply): string {
  const { errors = [], data }: GraphQLBody = reply.json;
  return JSON.stringify([reply.status, codesIn(reply), data, errors.map(withoutId)]);
}

function withoutId({ extensions, ...error }: NonNullable<GraphQLBody['errors']>[number]) {
  const { requestId: _, ...rest } = extensions ?? {};
  return { ...error, rest };
}
