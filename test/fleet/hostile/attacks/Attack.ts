import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { IdentityProvider, TokenOptions } from '../../../support/identityProvider.js';
import { rawHttp } from '../../../support/rawHttp.js';

/** What a table of attacks is made with. */
export interface Scene {
  readonly provider: IdentityProvider;
  /** A token with every scope but `taxpayers:any`, for {@link Scene.own} alone; claims and form can be bent. */
  token(claims?: Readonly<Record<string, unknown>>, how?: TokenOptions): Promise<string>;
  readonly own: string;
}

/** One hostile request and what has to come of it. */
export interface Attack {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Bytes for the socket, in place of all of the above. */
  readonly raw?: string;
  readonly status: number;
  /** The code of every error in the answer; undefined when it is not GraphQL's. */
  readonly code: string | undefined;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export async function launch(origin: string, attack: Attack): Promise<RawAnswer> {
  if (attack.raw !== undefined) {
    const { write, answer } = rawHttp(origin);
    write(attack.raw);
    const { status = 0, body: text = '' } = (await answer()) ?? {};
    return { status, headers: {}, text };
  }
  const { method = 'POST', path = '/graphql', headers, body } = attack;
  return new Promise((resolve, reject) => {
    const sent = httpRequest(origin, { method, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const { statusCode: status = 0, headers: received } = response;
        resolve({ status, headers: received, text: Buffer.concat(chunks).toString() });
      });
      response.on('error', reject);
    });
    // An answer may come, and the connection end, before a body that is too large was sent; then the answer counts.
    sent.on('error', (error) => setImmediate(() => reject(error)));
    sent.end(body);
  });
}

/** Refused before anything of GraphQL is read. */
export const unread = (status: number) => ({ status, code: undefined });

/** What an attack by a document sends. */
export function withDocument(authorization: string, query: string) {
  return { headers: { 'content-type': 'application/json', authorization }, body: JSON.stringify({ query }) };
}

/** The codes of the errors in an answer; empty when it has none or is not JSON. */
export function codesOf({ text }: RawAnswer): string[] {
  try {
    const { errors = [] } = JSON.parse(text) as { errors?: { extensions: { code: string } }[] };
    return errors.map(({ extensions }) => extensions.code);
  } catch {
    return [];
  }
}
