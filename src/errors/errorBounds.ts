import type { SourceLocation } from 'graphql';
import { GatewayError } from './errors.js';

/** Mistakes that are looked for in one request; where there are more, the search ends. */
export const maxMistakes = 100;
/** Most violations that one error names. */
export const maxViolations = 20;
/** Most mistakes of a document that are listed, each as an error of its own. */
const maxErrors = 5;
/** Most places in the document that one error names. */
const maxLocations = 10;
/** Longest text of an error, in characters. */
const maxText = 500;

/** Shortens the text of an error, which may quote any number of names of any length. */
export function boundedText(text: string): string {
  const short = text.replace(/(\w{100})\w+/g, '$1…');
  return short.length <= maxText ? short : `${short.slice(0, maxText - 1)}…`;
}

export function boundedLocations(locations: readonly SourceLocation[]): readonly SourceLocation[] {
  return locations.slice(0, maxLocations);
}

/** The errors of a document that is not valid: the first few, and if there are more, one that says how many. */
export function boundedErrors<E>(errors: readonly E[]): {
  readonly listed: readonly E[];
  readonly more: GatewayError[];
} {
  const left = errors.length - maxErrors;
  if (left <= 0) return { listed: errors, more: [] };
  const message = `The document has ${countOf(left, errors.length)} more ${left === 1 ? 'mistake' : 'mistakes'}`;
  return { listed: errors.slice(0, maxErrors), more: [new GatewayError('GRAPHQL_VALIDATION_FAILED', message)] };
}

/** A number of mistakes, for messages: `at least` so many when the search ended before it had `found` all. */
export function countOf(some: number, found: number): string {
  return found > maxMistakes ? `at least ${some}` : `${some}`;
}
