import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The id under which a request is found again: the one its caller chose, if it is one, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : randomUUID();
}
