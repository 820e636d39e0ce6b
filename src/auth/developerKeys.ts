import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import * as z from 'zod';
import type { Scope } from './caller.js';
import type { KeySource } from './KeySet.js';
import type { TokenPolicy } from './verifyToken.js';

/** Where the gateway in developer mode and `npm run dev:token` both look, relative to the working directory. */
export const developerDirectory = '.taxpayer-gateway';

const fileName = 'developer-key.json';
const algorithm = 'ES256';
const issuer = 'urn:taxpayer-gateway:developer';
const audience = 'taxpayer-gateway';
const taxpayersClaim = 'taxpayer_ids';

const text = z.string();
const pairSchema = z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: text, y: text, d: text });

export interface DeveloperToken {
  readonly subject: string;
  readonly scopes: readonly Scope[];
  readonly taxpayers: readonly string[];
  readonly ttlSeconds: number;
}

/** The key pair of one developer's machine. Tokens it signs are good in developer mode only. */
export class DeveloperKeys {
  readonly publicKey: JWK;
  readonly #privateKey: JWK;

  constructor({ d, ...publicKey }: z.infer<typeof pairSchema>) {
    this.publicKey = publicKey;
    this.#privateKey = { ...publicKey, d };
  }

  /** The policy that verifies tokens of this key pair. */
  get policy(): TokenPolicy {
    const source: KeySource = {
      version: 1,
      usableForMs: Infinity,
      keysFor: async ({ alg }) => ({ keys: alg === algorithm ? [this.publicKey] : [], version: 1 }),
      lookAgain: async () => false,
    };
    return {
      issuers: new Map([[issuer, { keys: source, audience: [audience] }]]),
      rights: { scopesClaims: ['scope'], scopesMap: new Map(), taxpayersClaim },
      tokenTypes: ['jwt'],
    };
  }

  async sign({ subject, scopes, taxpayers, ttlSeconds }: DeveloperToken): Promise<string> {
    return new SignJWT({ scope: scopes.join(' '), [taxpayersClaim]: [...taxpayers] })
      .setProtectedHeader({ alg: algorithm })
      .setIssuer(issuer)
      .setAudience(audience)
      .setSubject(subject)
      .setIssuedAt()
      .setExpirationTime(`${ttlSeconds}s`)
      .sign(this.#privateKey);
  }
}

/**
 * Reads the key pair kept in a directory, making it on the first call. Processes that call at once get the same pair.
 * Throws an Error in plain words when the file cannot be read or made, and when it holds something else.
 */
export async function loadDeveloperKeys(directory: string): Promise<DeveloperKeys> {
  const file = path.join(directory, fileName);
  const text = await readFile(file, 'utf8')
    .catch(() => create(directory, file))
    .catch((error: NodeJS.ErrnoException) => {
      const expected = `expected ${directory} to be a directory that this user may read and write`;
      throw new Error(`${file} can be neither read nor created (${error.code}): ${expected}`, { cause: error });
    });
  try {
    return new DeveloperKeys(pairSchema.parse(JSON.parse(text)));
  } catch {
    throw new Error(`${file} does not hold a developer key. Delete it and a new one is made.`);
  }
}

/** Written to a draft and linked into place: a link is atomic and never replaces the file of another process. */
async function create(directory: string, file: string): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const draft = path.join(directory, `.${fileName}.${crypto.randomUUID()}`);
  await writeFile(draft, `${JSON.stringify(await exportJWK(privateKey))}\n`, { mode: 0o600, flag: 'wx' });
  const linked = link(draft, file).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await linked.finally(() => unlink(draft));
  return readFile(file, 'utf8');
}
