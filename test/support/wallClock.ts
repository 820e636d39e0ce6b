import { execFileSync } from 'node:child_process';
import type { Environment } from './gateway.js';

/** The environment of a process whose wall clock is `ms` ahead of the machine's. Its monotonic clock is unchanged. */
export function clockAhead(ms: number): Environment {
  const shown = ['-f', '+0', 'sh', '-c', 'printf %s "$LD_PRELOAD"'];
  const library = execFileSync('faketime', shown, { encoding: 'utf8' });
  const monotonic = { DONT_FAKE_MONOTONIC: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  return { LD_PRELOAD: library, FAKETIME: `${ms < 0 ? '' : '+'}${ms / 1000}s`, ...monotonic };
}
