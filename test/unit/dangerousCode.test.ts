import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';

// What the source may not contain at all, or in few files that say why. The sandbox is no part of a production gateway.

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('sandbox'))
  .map((file) => ({ file, text: readFileSync(join('src', file), 'utf8') }));

const filesWith = (form: RegExp) => sources.flatMap(({ file, text }) => (form.test(text) ? [file] : []));

describe('the source', () => {
  test.each([
    ['runs text as code', /\beval\(|\bnew Function\b|['"]node:vm['"]/],
    ['starts another program', /child_process/],
    ['asks Node.js to check no certificates', /NODE_TLS_REJECT_UNAUTHORIZED/],
    ['uses a hash that is broken', /\bmd5\b|\bsha-?1\b/i],
    ['uses a cipher without authentication', /aes-\d+-(?:ecb|cbc|ctr)/i],
    ['brings cryptography of its own', /from '(?:crypto-js|node-forge|tweetnacl|bcrypt[^']*|sjcl)'/],
  ])('nowhere %s', (_, form) => {
    expect(filesWith(form)).toEqual([]);
  });

  test('takes and makes no connection without checking its certificates', () => {
    expect(filesWith(/rejectUnauthorized: false/)).toEqual([]);
  });

  test('makes regular expressions of constants alone', () => {
    expect(filesWith(/new RegExp\(/)).toEqual(['errors/graphqlMessages.ts']);
    expect(sources.find(({ file }) => file === 'errors/graphqlMessages.ts')?.text).toMatch(
      /const token = String\.raw`/,
    );
  });

  test('uses chance that can be guessed for waits and samples alone', () => {
    expect(filesWith(/Math\.random\(/).sort()).toEqual([
      'auth/IssuerKeys.ts', // when keys are read again
      'cache/LeasedCache.ts', // between looks at a lease
      'datasources/Watcher.ts', // between polls
      'stores/DirectoryLock.ts', // between looks at a lock
      'stores/redisClient.ts', // when it connects again
      'upstream/ResilientFetch.ts', // between tries
    ]);
  });
});
