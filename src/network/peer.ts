import type { IncomingMessage } from 'node:http';
import { isIP, SocketAddress } from 'node:net';
import type { TLSSocket } from 'node:tls';
import proxyaddr from 'proxy-addr';
import type { Logger } from '../observability/log.js';

export type AddressOf = (request: IncomingMessage) => string | undefined;

/**
 * Tells the address of who asks: that of the connection or, where it is a trusted proxy's, the rightmost in `X-Forwarded-For`
 * that is none. What is no address ends the list.
 */
export function addressReader(trustedProxies: readonly string[] | undefined): AddressOf {
  if (trustedProxies === undefined) return ({ socket }) => socket.remoteAddress;
  const isTrusted = proxyaddr.compile([...trustedProxies]);
  return (request) => proxyaddr.all(request, isTrusted).map(canonical).findLast(Boolean);
}

/**
 * A listener for `tlsClientError` that logs why certificates of clients are refused: each reason once a minute, so that nobody
 * can flood the log.
 */
export function refusedCertificates(log: Logger): (error: NodeJS.ErrnoException, socket: TLSSocket) => void {
  const toldAt = new Map<string, number>();
  return ({ code = '' }, { authorizationError }) => {
    const isMissing = code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';
    if (!isMissing && !authorizationError) return; // no certificate was wrong: a scan, or another protocol
    const reason = isMissing ? 'no client certificate' : String(authorizationError);
    if (performance.now() - (toldAt.get(reason) ?? Number.NEGATIVE_INFINITY) < 60_000) return;
    toldAt.set(reason, performance.now());
    log.warn({ reason }, 'a client is refused for its certificate');
  };
}

/**
 * The one way to write an address (RFC 5952), without a port, so that two of the same are equal texts. IPv4 in IPv6, as a socket
 * shows its peer that listens on IPv6, is IPv4. Undefined for text that is no address.
 */
function canonical(text: string): string | undefined {
  const [, inBrackets, plain] = /^(?:\[(.*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  const address = inBrackets ?? plain ?? text;
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  return new SocketAddress({ family: 'ipv6', address }).address.replace(/^::ffff:(?=\d+\.)/, '');
}
