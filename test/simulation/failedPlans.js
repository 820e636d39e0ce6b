import { readFileSync } from 'node:fs';

export const failedPlansFile = new URL('./failedPlans.jsonl', import.meta.url);

/** The plans that have failed before: another commit may make another plan of the same seed. */
export function failedPlans() {
  const lines = readFileSync(failedPlansFile, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line));
}
