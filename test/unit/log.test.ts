import { expect, it } from '@jest/globals';
import { createLogger } from '../../src/observability/log.js';

it('a field that must never be logged is not, however deep it is in what is logged', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => lines.push(line) });
  const planted = { ssn: 'planted', metadata: { note: 'planted' } };
  log.info({ ...planted, a: { ...planted, b: { ...planted, told: 'yes' } } }, 'a line');
  const redacted = { ssn: '[redacted]', metadata: '[redacted]' };
  expect(JSON.parse(lines.join(''))).toMatchObject({
    ...redacted,
    a: { ...redacted, b: { ...redacted, told: 'yes' } },
  });
  expect(lines.join('')).not.toContain('planted');
});
