import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/config.js';

const text = readFileSync(new URL('../../docs/network.md', import.meta.url), 'utf8');
const blocks = [...text.matchAll(/^```env\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
const base = {
  ...{ AUTH_MODE: 'disabled', UPSTREAM_BASE_URL: 'https://service.example' },
  ...{ UPSTREAM_CLIENT_ID: 'id', UPSTREAM_CLIENT_SECRET: 'secret' },
};

test.each(blocks)('has settings that work: %s', (block) => {
  const env = Object.fromEntries(
    block
      .trim()
      .split('\n')
      .map((line) => line.split(/=(.*)/s)),
  );
  expect(loadConfig({ ...base, ...env }).warnings).toEqual([]);
});

test('has an example of each part', () => {
  expect(blocks).toHaveLength(5);
});
