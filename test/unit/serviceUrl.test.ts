import { describe, expect, it } from '@jest/globals';
import { serviceUrl } from '../../src/upstream/serviceUrl.js';

describe('serviceUrl', () => {
  it('makes each segment one segment of the path, whatever is in it', () => {
    expect(serviceUrl('https://service.example/v1', 'auth', 'a/b?c#d e', '...')).toBe(
      'https://service.example/v1/auth/a%2Fb%3Fc%23d%20e/...',
    );
  });

  it('takes a base with any number of slashes at its end', () => {
    for (const base of ['http://a/b', 'http://a/b/', 'http://a/b///'])
      expect(serviceUrl(base, 'c')).toBe('http://a/b/c');
  });

  it.each(['', '.', '..', '\ud800'])('refuses %j, which is no segment', (segment) => {
    expect(() => serviceUrl('http://a', 'b', segment)).toThrow(
      new TypeError('Expected a path segment, found an empty, dot or malformed one'),
    );
  });
});
