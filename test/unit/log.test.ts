import { recordedLog } from '../support/recordedLog.js';

it('a field that must never be logged is not, however deep it is in what is logged', () => {
  const { lines, log } = recordedLog();
  const planted = { ssn: 'planted', metadata: { note: 'planted' } };
  log.info({ ...planted, a: { ...planted, b: { ...planted, told: 'yes' } } }, 'a line');
  const redacted = { ssn: '[redacted]', metadata: '[redacted]' };
  expect(JSON.parse(lines.join(''))).toMatchObject({
    ...redacted,
    a: { ...redacted, b: { ...redacted, told: 'yes' } },
  });
  expect(lines.join('')).not.toContain('planted');
});

it('an error has its type, code and frames, and no message, which may quote what was sent', () => {
  const { lines, log } = recordedLog();
  const cause = Object.assign(new TypeError('planted'), { code: 'ECODE' });
  log.error({ err: new Error('planted', { cause }) }, 'a line');
  const frames = expect.arrayContaining([expect.stringMatching(/^at /)]);
  expect(JSON.parse(lines.join('')).err).toEqual({
    type: 'Error',
    frames,
    cause: { type: 'TypeError', code: 'ECODE', frames },
  });
  expect(lines.join('')).not.toContain('planted');
});
