import type { IncomingMessage } from 'node:http';
import { type Attributes, type Context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import type { Store } from '../stores/Store.js';
import type { Endpoint } from '../upstream/ResilientFetch.js';

/** The methods that spans name; others are `_OTHER`. */
const knownMethods = new Set('GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY'.split(' '));

/** The method of a request, if it is one that spans name. */
export function methodOf({ method = '' }: IncomingMessage): string | undefined {
  return knownMethods.has(method) ? method : undefined;
}

/** What is known of a request when it comes. */
export function requestAttributes(request: IncomingMessage, route: string): Attributes {
  return {
    'http.request.method': methodOf(request) ?? '_OTHER',
    'http.route': route,
    'url.path': route,
    'url.scheme': 'encrypted' in request.socket ? 'https' : 'http',
    'network.protocol.version': request.httpVersion,
  };
}

/** Adds what is known of an operation when it is answered. */
export function describeOperation(attributes: Attributes, label: string, type: string, errors: number): void {
  if (type !== 'none') attributes['graphql.operation.type'] = type;
  attributes['gateway.operation'] = label;
  attributes['gateway.errors'] = errors;
}

/** Method and path template of each endpoint of the service (interface, part 4). */
export const calls: Readonly<Record<Endpoint, readonly [method: string, template: string]>> = {
  createClientLink: ['POST', '/client-links'],
  taxpayerToken: ['GET', '/auth/tax-payer/{id}/token'],
  refreshJob: ['GET', '/tax-payer/{taxpayerId}/refresh/{jobId}'],
};

export type StoreOperation = Exclude<keyof Store, 'kind' | 'close'>;
/** The operations of a store that get a span. */
export const storeOperations: Readonly<Record<StoreOperation, true>> = {
  acquire: true,
  renew: true,
  settle: true,
  forget: true,
  forgottenSince: true,
  fields: true,
  get: true,
  put: true,
  deleteIf: true,
  increment: true,
};

/** What a `traceparent` header says (W3C Trace Context, section 3.2); undefined when there is none that can be used. */
export function callerOf({ headers }: IncomingMessage): Context | undefined {
  const header = headers['traceparent'];
  const caller = typeof header === 'string' ? parseTraceParent(header) : null;
  return caller === null ? undefined : trace.setSpanContext(ROOT_CONTEXT, { ...caller, isRemote: true });
}

/** The host and port of an address. */
export function serverOf(url: string): Attributes {
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
}
