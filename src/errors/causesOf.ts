import { unwrapResolverError } from '@apollo/server/errors';
import { GatewayError } from './errors.js';
import { isBug, maskError } from './maskError.js';

const maxLength = 160;
const maxCauses = 3;

/** Why an operation failed, for the log: the different causes of its errors, without what a caller or the service sent. */
export function causesOf(errors: readonly unknown[]): readonly string[] {
  return [...new Set(errors.slice(0, 20).map(causeOf))].slice(0, maxCauses);
}

function causeOf(error: unknown): string {
  const original = unwrapResolverError(error);
  if (original instanceof GatewayError) return original.reason ?? withoutNames(expectationOf(original));
  if (isBug(error)) return original instanceof Error ? original.name : typeof original;
  return withoutNames(maskError(error, { requestId: '', openSchema: true }).message);
}

/** The expectation without paths, which may hold keys of metadata and names that a client gave to its variables. */
function expectationOf({ message, violations }: GatewayError): string {
  const [violation] = violations ?? [];
  return violation === undefined ? message : `a value ${violation.message}`;
}

/** Removes names that a document may have chosen: messages quote them, except the name of a variable. */
function withoutNames(message: string): string {
  return message
    .replace(/"[^"]*"/g, '"…"')
    .replace(/^Variable \w+/, 'A variable')
    .slice(0, maxLength);
}
