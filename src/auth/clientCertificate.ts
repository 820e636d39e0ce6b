import { hash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { JWTPayload } from 'jose';
import * as z from 'zod';
import { unauthenticated } from '../errors/errors.js';

/** Also used when a client sends the scheme DPoP instead of Bearer (RFC 9449 section 7.1). */
export const dpopRefused = 'The access token is bound to a DPoP key (RFC 9449), which is not supported here';

const confirmation = z.object({ 'x5t#S256': z.string().optional(), jkt: z.unknown().optional() });

/**
 * The thumbprint of the certificate that a token is bound to (RFC 8705 section 3.1); undefined for a bearer token. Throws
 * UNAUTHENTICATED for a token bound in another way: what cannot be checked must not pass for a bearer token.
 */
export function boundCertificate(payload: JWTPayload): string | undefined {
  if (!Object.hasOwn(payload, 'cnf')) return undefined;
  const { jkt, 'x5t#S256': thumbprint } = confirmation.safeParse(payload['cnf']).data ?? {};
  if (jkt !== undefined) throw unauthenticated(dpopRefused);
  if (thumbprint === undefined) {
    throw unauthenticated('The access token is bound to a key in a way that is not supported here (cnf)');
  }
  return thumbprint;
}

/** Throws UNAUTHENTICATED unless the client of a connection presented this certificate. Its subject does not matter. */
export function requireCertificate(thumbprint: string, socket: Socket | undefined): void {
  const presented = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined;
  if (presented === undefined) {
    throw unauthenticated('The access token is bound to a client certificate, and this connection presents none');
  }
  if (hash('sha256', presented, 'base64url') !== thumbprint) {
    throw unauthenticated('The access token is bound to another client certificate than the one presented');
  }
}
