import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atEnd } from './atEnd.js';

const root = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-tests-'));
atEnd(() => rmSync(root, { recursive: true, force: true }));

/** A new folder, which goes when the tests of its file are over. */
export function scratch(): string {
  return mkdtempSync(join(root, 'folder-'));
}
