import { createLogger } from '../../src/observability/log.js';

/** A log, and its lines so far. */
export function recordedLog() {
  const lines: string[] = [];
  return { lines, log: createLogger('info', { write: (line) => lines.push(line) }) };
}
