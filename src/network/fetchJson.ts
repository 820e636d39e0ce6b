import type { Agent } from 'node:http';
import type { Readable } from 'node:stream';
import fetch, { type FetchError, type RequestInit } from 'node-fetch';
import { giveUpAfter } from '../process/pause.js';
import { codeOf } from '../process/systemErrors.js';

/** The agent for an address. */
export type AgentFor = (url: URL) => Agent;

/** Why there is no usable answer. The message says it in a few words, such as `HTTP 503`, without anything of the answer. */
export class NoAnswer extends Error {
  constructor(
    readonly fault: 'timeout' | 'network' | 'answer',
    words: string,
    /** The HTTP status, if the answer was refused for it. */
    readonly status?: number,
  ) {
    super(words);
  }
}

const maxBodyBytes = 1024 * 1024;

/** Reads JSON of bounded size in at most `limitMs`. @throws NoAnswer */
export async function fetchJson(url: string, limitMs: number, init: RequestInit): Promise<unknown> {
  const limit = new AbortController();
  const endLimit = giveUpAfter(limitMs, () => limit.abort());
  let status = 200;
  try {
    const response = await fetch(url, {
      ...init,
      signal: limit.signal as never,
      redirect: 'error',
      size: maxBodyBytes,
    });
    if (response.status === 200) return await response.json();
    status = response.status;
    (response.body as Readable | null)?.destroy(); // an unread body would keep the connection open
  } catch (error) {
    if (limit.signal.aborted) throw new NoAnswer('timeout', 'no answer in time');
    if (error instanceof SyntaxError) throw new NoAnswer('answer', 'the answer is not JSON');
    const { type } = error as FetchError;
    if (type === 'no-redirect') throw new NoAnswer('answer', 'redirects are not followed');
    if (type === 'max-size') throw new NoAnswer('answer', `larger than ${maxBodyBytes} bytes`);
    throw new NoAnswer('network', codeOf(error) ?? 'the connection was lost');
  } finally {
    endLimit();
  }
  if (status === 407) throw new NoAnswer('network', 'PROXY_HTTP_407'); // a proxy answers this for a server behind it
  throw new NoAnswer('answer', `HTTP ${status}`, status);
}
