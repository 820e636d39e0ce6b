import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type AddressRanges, unmapped } from './AddressRanges.js';

/** Who is at the other end of a request, as far as settings ask to look. */
export interface Peer {
  /** The caller's, as trusted proxies tell it; undefined without TRUSTED_PROXIES. */
  readonly address: string | undefined;
  /** Undefined without TLS_CLIENT_CA_FILE. */
  readonly certificate: ClientCertificate | undefined;
}

/** A client's certificate, issued by an authority of TLS_CLIENT_CA_FILE. */
export interface ClientCertificate {
  readonly subject: string;
  /** Names that only machines have: DNS names and SPIFFE ids. */
  readonly machineNames: readonly string[];
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Set where settings ask to look. */
    peer?: Peer;
  }
}

/** The address that limits count for: the peer's own, unless trusted proxies tell the caller's. */
export function addressOf({ peer, socket }: IncomingMessage): string {
  return `address ${peer?.address ?? socket.remoteAddress ?? 'unknown'}`;
}

export interface PeersOptions {
  /** The proxies whose word on addresses is believed. */
  readonly trusted: AddressRanges | undefined;
  readonly wantsCertificates: boolean;
}

/** Looks who is at the other end of requests. */
export class Peers {
  /** Of connections that were let in. */
  readonly #certificates = new WeakMap<Socket, ClientCertificate>();

  constructor(private readonly options: PeersOptions) {}

  /** Notes on the request who sends it. Returns why the connection is not to be let in, if it is not. */
  meet(request: IncomingMessage): string | undefined {
    const { trusted, wantsCertificates } = this.options;
    const { socket } = request;
    const certificate = wantsCertificates ? (this.#certificates.get(socket) ?? this.#examine(socket)) : undefined;
    request.peer = {
      address: trusted && callerAddress(request, trusted),
      certificate: typeof certificate === 'object' ? certificate : undefined,
    };
    return typeof certificate === 'string' ? certificate : undefined;
  }

  /** The certificate, or what is wrong with it. */
  #examine(socket: Socket): ClientCertificate | string {
    const x509 = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    if (x509 === undefined) return 'no client certificate';
    const { authorized, authorizationError } = socket as TLSSocket;
    if (!authorized) return `client certificate: ${authorizationError}`;
    // Node.js quotes a name with a comma, which it writes as \u002c: this splits between names only, and no quoted one counts.
    const names = (x509.subjectAltName ?? '').split(', ').map((name) => /^(?:DNS:|URI:(?=spiffe:))([^"]+)$/.exec(name));
    const certificate = { subject: x509.subject, machineNames: names.flatMap((match) => match?.[1] ?? []) };
    this.#certificates.set(socket, certificate);
    return certificate;
  }
}

/**
 * The address of the caller: the rightmost one that is no trusted proxy's, as these tell it. Where `Forwarded` (RFC 7239)
 * and `X-Forwarded-For` disagree neither is believed: a proxy that writes the one passes the other on as it came.
 */
export function callerAddress({ headers, socket }: IncomingMessage, trusted: AddressRanges): string | undefined {
  const peer = socket.remoteAddress && unmapped(socket.remoteAddress);
  if (!peer || !trusted.has(peer)) return peer;
  const { forwarded, 'x-forwarded-for': plain } = headers;
  const lists = [forwarded?.split(',').map(forOf), plain === undefined ? undefined : String(plain).split(',')];
  const told = new Set(lists.flatMap((hops) => (hops ? rightmostUntrusted(hops, peer, trusted) : [])));
  return told.size === 1 ? [...told][0] : peer;
}

/** Read from the right, where our proxies write: what the caller sent is to the left. What is no address ends the list. */
function rightmostUntrusted(hops: readonly string[], peer: string, trusted: AddressRanges): string {
  let address = peer;
  for (const hop of [...hops].reverse()) {
    const next = unmapped(withoutPort(hop.trim()));
    if (!trusted.has(address) || isIP(next) === 0) break;
    address = next;
  }
  return address;
}

/** Of `192.0.2.1:4711` and `[2001:db8::1]:4711`; an address without a port is left as it is. */
function withoutPort(node: string): string {
  const [, inBrackets, plain] = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/.exec(node) ?? [];
  return inBrackets ?? plain ?? node;
}

/** The `for` of one element of a `Forwarded` header. */
function forOf(element: string): string {
  return /(?:^|;)\s*for="?([^";]*)"?\s*(?:;|$)/i.exec(element)?.[1] ?? '';
}
