import { inspect } from 'node:util';
import { Secret } from '../../src/config/Secret.js';

const secret = new Secret('planted-text');

it.each([
  ['String()', () => String(secret)],
  ['JSON.stringify', () => JSON.stringify({ secret })],
  ['util.inspect, hidden fields included', () => inspect(secret, { showHidden: true, depth: 9 })],
  ['Object.entries', () => JSON.stringify(Object.entries(secret))],
])('Secret is not printed by %s', (_, print) => {
  expect(print()).not.toContain('planted-text');
});
