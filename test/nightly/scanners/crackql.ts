import { asJson, ask, type Reply, type Request, type Target, times } from './Scan.js';

// How CrackQL (github.com/nicholasaleks/CrackQL) guesses: one operation for each line of a list, many in one document under
// aliases; the Attacker of InQL does the same. Its templates guess ids, names of users and one-time codes.

/** A guess, as a template makes it of the `n`th line. */
export type Guess = (n: number) => string;

export const guesses = {
  'ids of taxpayers': (n) => `taxpayer(id: "${idOf(n)}") { id token { name } }`,
  'ids of jobs': (n) => `refreshJob(taxpayerId: "${idOf(n)}", jobId: "1") { status }`,
  'tokens of taxpayers': (n) => `taxpayerToken(taxpayerId: "${idOf(n)}") { accessToken }`,
} satisfies Readonly<Record<string, Guess>>;

export const link: Guess = (n) => `createClientLink(input: { metadata: { guess: ${n} } }) { clientLink { id } }`;

const idOf = (n: number) => `guess-${n}`;

/** A batch as both tools make it: `alias1: …` or `op0: …`. */
export function batch(type: 'query' | 'mutation', size: number, guess: Guess, from = 0): string {
  return `${type} { ${times(size, (i) => `alias${from + i}: ${guess(from + i)}`)} }`;
}

/** The same guesses as a list of operations. */
export function arrayBatch(size: number, guess: Guess): Request {
  const { headers = {} } = asJson('');
  return { headers, body: JSON.stringify(Array.from({ length: size }, (_, i) => ({ query: `{ ${guess(i)} }` }))) };
}

/** Sends batch after batch; how many guesses got an error of each code. */
export async function crack(target: Target, guess: Guess, { batches, size }: { batches: number; size: number }) {
  const codes: Record<string, number> = {};
  for (let done = 0; done < batches; done += 1) {
    const { json } = await ask(target, batch('query', size, guess, done * size));
    for (const { extensions } of json.errors ?? []) {
      const code = String(extensions?.['code']);
      codes[code] = (codes[code] ?? 0) + 1;
    }
  }
  return codes;
}

/** Whether guesses were looked at one by one: their errors have paths then. */
export function isAnswered({ json: { errors = [] } }: Reply): boolean {
  return errors.some((error) => 'path' in error);
}
