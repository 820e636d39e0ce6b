import type { Agent } from 'node:http';
import type { Readable } from 'node:stream';
import fetch, { type FetchError, type RequestInit } from 'node-fetch';

/** Why there is no usable answer; `cause` says it in a few words, such as `HTTP 503`. */
export interface ReadFailure {
  readonly fault: ReadFault;
  readonly cause: string;
}

export type ReadFault =
  | 'timeout'
  | 'network'
  | 'redirect'
  | 'status'
  | 'too-large'
  | 'not-metadata'
  | 'other-issuer'
  | 'not-a-key-set'
  | 'no-usable-key';

/** The agent for an address; undefined for Node's own. */
export type AgentFor = (url: URL) => Agent | undefined;

const maxBodyBytes = 1024 * 1024;

/**
 * Reads JSON of bounded size from an identity provider, or from a decision point that is sent `init`. `json` is undefined
 * when the answer is not JSON. Never rejects.
 */
export async function readJson(
  url: string,
  accept: string,
  signal: AbortSignal,
  init: Pick<RequestInit, 'method' | 'headers' | 'body' | 'agent'> = {},
): Promise<{ readonly json: unknown } | ReadFailure> {
  try {
    const headers = { ...init.headers, accept };
    const response = await fetch(url, { ...init, headers, redirect: 'error', size: maxBodyBytes, signal });
    if (response.status === 200) return { json: await response.json() };
    (response.body as Readable | null)?.destroy(); // an unread body would keep the connection open
    // Balancers end idle connections by a 408, which may cross a request that was not read.
    return { fault: response.status === 408 ? 'network' : 'status', cause: `HTTP ${response.status}` };
  } catch (error) {
    if (signal.aborted) return { fault: 'timeout', cause: 'no answer in time' };
    if (error instanceof SyntaxError) return { json: undefined };
    const { type, code = '' } = error as FetchError;
    if (type === 'no-redirect') return { fault: 'redirect', cause: 'redirects are not followed' };
    if (type === 'max-size') return { fault: 'too-large', cause: `larger than ${maxBodyBytes} bytes` };
    return { fault: 'network', cause: /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : 'the connection was lost' };
  }
}
