import { existsSync, readFileSync } from 'node:fs';

/** The version in our package.json. */
export function packageVersion(): string {
  // bundled, this code may lie one folder deeper
  const files = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? 'unknown' : (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
