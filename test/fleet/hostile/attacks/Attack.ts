import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { IdentityProvider, TokenOptions } from '../../../support/identityProvider.js';

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
  const { hostname, port } = new URL(origin);
  if (attack.raw !== undefined) return launchRaw(hostname, Number(port), attack.raw);
  const { method = 'POST', path = '/graphql', headers, body } = attack;
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ hostname, port, method, path, headers, agent: false }, (response) => {
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

/** A POST of a document as JSON. */
export function post(authorization: string, query: string, variables: object = {}): Pick<Attack, 'headers' | 'body'> {
  return {
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ query, variables }),
  };
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

function launchRaw(host: string, port: number, bytes: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(bytes, 'latin1'));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', reject);
    socket.on('close', () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), headers: {}, text }));
  });
}
