import { readFileSync } from 'node:fs';

export const failedPlansFile = new URL('./failedPlans.jsonl', import.meta.url);

/** The plans that have failed before. The plans are kept because the same seed may give another plan in a later commit. */
export function failedPlans() {
  const lines = readFileSync(failedPlansFile, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line));
}
