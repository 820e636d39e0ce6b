import { describe, expect, it } from '@jest/globals';
import { heldBytes } from '../../src/cache/heldBytes.js';

describe('heldBytes', () => {
  it.each<[string, unknown, number]>([
    ['a number', 7, 16],
    ['true', true, 16],
    ['null', null, 16],
    ['an ASCII text', 'abc', 16 + 3],
    ['a text beyond ASCII: two bytes for each character', 'ä', 16 + 2],
    ['an empty list', [], 64],
    ['an empty object', {}, 64],
    ['a list, without keys', [1, 2], 64 + 2 * (8 + 16)],
    ['an object, with its keys', { a: 1 }, 64 + (8 + 16) + (8 + 16 + 1)],
    ['what is nested', { a: [null] }, 64 + (8 + 64 + 8 + 16) + (8 + 16 + 1)],
  ])('counts %s', (_, value, bytes) => {
    expect(heldBytes(value)).toBe(bytes);
  });
});
