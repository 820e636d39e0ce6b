import { describe, expect, it } from '@jest/globals';
import { decodeEntry, decodeFailure, encodeEntry, encodeFailure } from '../../src/cache/StoredEntries.js';
import { GatewayError } from '../../src/errors/errors.js';

const codec = {
  encode: (value: string) => ({ text: value }),
  decode: (stored: unknown) => {
    const { text } = stored as { text?: unknown };
    if (typeof text !== 'string') throw new TypeError('no text');
    return text;
  },
};

describe('A stored entry', () => {
  const entry = { version: 'v1', value: 'x', fetchedAt: 5, view: 'of its readers' };

  it('comes back through JSON as it was, without the view of its readers', () => {
    const stored = JSON.parse(JSON.stringify(encodeEntry(entry, codec)));
    expect(stored).toEqual({ version: 'v1', fetchedAt: 5, value: { text: 'x' } });
    expect(decodeEntry(stored, codec)).toEqual({ version: 'v1', fetchedAt: 5, value: 'x' });
  });

  it.each([
    ['nothing', undefined],
    ['a text', 'x'],
    ['one without a version', { fetchedAt: 5, value: { text: 'x' } }],
    ['one with a version that is no text', { version: 1, fetchedAt: 5, value: { text: 'x' } }],
    ['one without a time', { version: 'v1', value: { text: 'x' } }],
    ['one with a time that is no number', { version: 'v1', fetchedAt: '5', value: { text: 'x' } }],
    ['one whose value its codec refuses', { version: 'v1', fetchedAt: 5, value: {} }],
  ])('is absent when it is %s', (_, stored) => {
    expect(decodeEntry(stored, codec)).toBeUndefined();
  });
});

describe('A stored failure', () => {
  const through = (error: GatewayError) => decodeFailure(JSON.parse(JSON.stringify(encodeFailure(error))));

  it('comes back as an error with its code, message, reason and time to wait', () => {
    const error = new GatewayError('UPSTREAM_RATE_LIMITED', 'Wait', { reason: 'HTTP 429', retryAfterSeconds: 7 });
    expect(through(error)).toBeInstanceOf(GatewayError);
    const { code, message, reason, retryAfterSeconds } = through(error) as GatewayError;
    expect({ code, message, reason, retryAfterSeconds }).toEqual({
      code: 'UPSTREAM_RATE_LIMITED',
      message: 'Wait',
      reason: 'HTTP 429',
      retryAfterSeconds: 7,
    });
    const error404 = through(new GatewayError('NOT_FOUND', 'Nobody'));
    expect(error404?.retryAfterSeconds).toEqual(new GatewayError('NOT_FOUND', 'Nobody').retryAfterSeconds);
    expect(error404?.reason).toBeUndefined();
  });

  it.each([
    ['nothing', undefined],
    ['of a code that is not ours', { code: 'OTHER', message: 'x' }],
    ['without a message', { code: 'NOT_FOUND' }],
    ['with a time to wait that is no number', { code: 'NOT_FOUND', message: 'x', retryAfterSeconds: '7' }],
    ['with a reason that is no text', { code: 'NOT_FOUND', message: 'x', reason: 7 }],
  ])('is absent when it is %s', (_, stored) => {
    expect(decodeFailure(stored)).toBeUndefined();
  });
});
