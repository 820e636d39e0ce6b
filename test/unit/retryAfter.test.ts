import { secondsIn } from '../../src/network/exchange.js';

const now = Date.parse('2024-05-06T07:08:09Z');

describe('Retry-After', () => {
  it.each([
    ['120', 120],
    ['0', 0],
    ['3600', 3600],
    ['Mon, 06 May 2024 07:08:39 GMT', 30],
    ['Monday, 06-May-24 07:08:39 GMT', 30],
    ['Mon May  6 07:08:39 2024 GMT', 30],
    ['Mon May  6 07:08:39 2024', 30], // the tests run in another time zone than UTC
  ])('%j is %d seconds', (header, seconds) => {
    expect(secondsIn(header, now)).toBe(seconds);
  });

  it.each(['3601', '7200', '86400', 'Mon, 06 May 2024 09:08:09 GMT', 'Tue, 07 May 2024 07:08:09 GMT'])(
    '%j counts as an hour, so that it is neither forgotten nor silences the gateway for longer',
    (header) => {
      expect(secondsIn(header, now)).toBe(3600);
    },
  );

  it('counts a part of a second as a whole one, so that nobody comes back too early', () => {
    expect(secondsIn('Mon, 06 May 2024 07:08:39 GMT', now + 1)).toBe(30);
    expect(secondsIn('Mon, 06 May 2024 07:08:39 GMT', now + 999)).toBe(30);
  });

  it('is over when the date has passed on its way', () => {
    expect(secondsIn('Mon, 06 May 2024 07:08:09 GMT', now)).toBe(0);
    expect(secondsIn('Mon, 06 May 2024 07:08:09 GMT', now + 999)).toBe(0);
    expect(secondsIn('Mon, 06 May 2024 07:08:09 GMT', now + 1000)).toBeUndefined();
  });

  it.each([
    null,
    '',
    'soon',
    '-5',
    '1.5',
    '1e3',
    '86401',
    '2024-05-06T07:08:39Z',
    'Fri, 06 May 2044 07:08:39 GMT',
    'Thu, 01 Jan 1970 00:00:00 GMT',
    'Mon, 99 May 2024 99:99:99 GMT',
    '1'.repeat(100_000),
  ])('%.40j is not believed', (header) => {
    expect(secondsIn(header, now)).toBeUndefined();
  });
});
