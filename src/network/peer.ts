import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type AddressRanges, canonical } from './AddressRanges.js';

/** Who is at the other end of a request, as far as the settings require. */
export interface Peer {
  /** The caller's address as reported by trusted proxies; undefined without TRUSTED_PROXIES. */
  readonly address: string | undefined;
  /** Undefined without TLS_CLIENT_CA_FILE. */
  readonly certificate: ClientCertificate | undefined;
}

/** A client's certificate, issued by an authority of TLS_CLIENT_CA_FILE. */
export interface ClientCertificate {
  readonly subject: string;
  /** A name that only machines have: the first DNS name or SPIFFE id. */
  readonly machineName: string | undefined;
}

declare module 'node:http' {
  interface IncomingMessage {
    /** Set by {@link Peers.meet}, when a setting requires it. */
    peer?: Peer;
  }
}

/** The address that limits count by: the one reported by trusted proxies, otherwise that of the socket. */
export function addressOf({ peer, socket }: IncomingMessage): string {
  return `address ${peer?.address ?? socket.remoteAddress ?? 'unknown'}`;
}

export interface PeersOptions {
  /** Proxies whose `X-Forwarded-For` is trusted. */
  readonly trusted: AddressRanges | undefined;
  readonly wantsCertificates: boolean;
}

type Accepted = { readonly state: 'accepted'; readonly certificate: ClientCertificate };
/** What is known of a connection's certificate. */
type Examined = Accepted | { readonly state: 'refused'; readonly reason: string } | { readonly state: 'not required' };

/** Finds out who is at the other end of requests. */
export class Peers {
  /** By connection. */
  readonly #accepted = new WeakMap<Socket, Accepted>();

  constructor(private readonly options: PeersOptions) {}

  /** Sets `request.peer`. Returns why to refuse the connection; undefined when it is accepted. */
  meet(request: IncomingMessage): string | undefined {
    const { trusted } = this.options;
    const examined = this.#accepted.get(request.socket) ?? this.#examine(request.socket);
    request.peer = {
      address: trusted && callerAddress(request, trusted),
      certificate: examined.state === 'accepted' ? examined.certificate : undefined,
    };
    return examined.state === 'refused' ? examined.reason : undefined;
  }

  #examine(socket: Socket): Examined {
    if (!this.options.wantsCertificates) return { state: 'not required' };
    const x509 = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    if (x509 === undefined) return { state: 'refused', reason: 'no client certificate' };
    const { authorized, authorizationError } = socket as TLSSocket;
    if (!authorized) return { state: 'refused', reason: `client certificate: ${authorizationError}` };
    // Node.js quotes a name with a comma and writes the comma as \u002c: the split is safe, and quoted names are ignored.
    const names = (x509.subjectAltName ?? '').split(', ').map((name) => /^(?:DNS:|URI:(?=spiffe:))([^"]+)$/.exec(name));
    const certificate = { subject: x509.subject, machineName: names.find(Boolean)?.[1] };
    const accepted: Accepted = { state: 'accepted', certificate };
    this.#accepted.set(socket, accepted);
    return accepted;
  }
}

/**
 * The caller's address: the rightmost one in `X-Forwarded-For` that is not a trusted proxy's. Reads from the right, where our
 * proxies append: the caller may have sent the left part. A non-address ends the list.
 */
export function callerAddress({ headers, socket }: IncomingMessage, trusted: AddressRanges): string | undefined {
  let address = canonical(socket.remoteAddress ?? '');
  const hops = String(headers['x-forwarded-for'] ?? '').split(',');
  for (const hop of hops.map((text) => text.trim()).reverse()) {
    if (hop === '') continue; // an empty element of a list counts for nothing (RFC 9110, 5.6.1.2)
    const next = canonical(withoutPort(hop));
    if (!address || !trusted.has(address) || next === undefined) break;
    address = next;
  }
  return address;
}

/** Strips the port of `192.0.2.1:4711` and `[2001:db8::1]:4711`; leaves an address without a port as it is. */
function withoutPort(node: string): string {
  const [, inBrackets, plain] = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/.exec(node) ?? [];
  return inBrackets ?? plain ?? node;
}
