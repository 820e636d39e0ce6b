import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, SocketAddress } from 'node:net';
import proxyaddr from 'proxy-addr';
import type { Caller } from '../auth/caller.js';
import { type Client, clientOf } from '../operations/GraphQLRequest.js';
import type { StatusOf } from '../operations/Operation.js';
import type { Dialect } from './accept.js';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id: the caller's, if well formed, or a new one. */
function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : crypto.randomUUID();
}

type AddressOf = (request: IncomingMessage) => string | undefined;

/** Most proxies in a row that are looked at: a header may name thousands. */
const mostProxies = 20;

/**
 * Returns a function that finds a client's address: that of the connection or, if it is a trusted proxy's, the rightmost in
 * `X-Forwarded-For` that is not. Text that is not a plain address ends the list.
 */
export function addressReader(trustedProxies: readonly string[] | undefined): AddressOf {
  if (trustedProxies === undefined) return ({ socket }) => socket.remoteAddress;
  const isTrusted = proxyaddr.compile([...trustedProxies]);
  const trust = (address: string, hop: number) => hop < mostProxies && isTrusted(canonical(address) ?? address, hop);
  return (request) => proxyaddr.all(request, trust).map(canonical).findLast(Boolean);
}

/**
 * The canonical text of an address (RFC 5952), without its port, so that equal addresses are equal texts. An IPv4 address in
 * IPv6 form, as a socket that listens on IPv6 shows its peer, becomes plain IPv4. Undefined for text that is not an address.
 */
function canonical(text: string): string | undefined {
  const [, inBrackets, plain] = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  const address = inBrackets ?? plain ?? text;
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  return new SocketAddress({ family: 'ipv6', address }).address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** The facts of an HTTP request. Most requests need no abort signal, so it is created on first use. */
export class HttpFacts {
  readonly requestId: string;
  readonly startedAt = performance.now();
  /** Assigned with the rest of the {@link Identity}, once it is known. */
  declare caller?: Caller;
  #signal: AbortSignal | undefined;

  constructor(
    readonly response: ServerResponse,
    readonly remoteAddress: string | undefined,
    /** How JSON is written for the client; the refusal of one that accepts none is plain JSON. */
    readonly dialect: Dialect,
  ) {
    this.requestId = requestIdOf(response.req);
  }

  get request(): IncomingMessage {
    return this.response.req;
  }

  get statusOf(): StatusOf {
    return this.dialect.statusOf;
  }

  get client(): Client {
    return clientOf(this.request.headers);
  }

  /** Aborts when the answer was written, or the connection has ended. */
  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    if (this.response.destroyed || this.request.socket.destroyed) controller.abort();
    whenOver(this.response, () => controller.abort());
    return controller.signal;
  }
}

/** Calls `action` when the answer was written, or the connection has ended; perhaps twice. */
export function whenOver(response: ServerResponse, action: () => void): void {
  const { socket } = response.req;
  const over = () => {
    socket.off('close', over);
    action();
  };
  response.once('close', over);
  socket.once('close', over); // a pipelined response that has no socket yet is not told
}
