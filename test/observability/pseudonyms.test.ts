import { expect, it } from '@jest/globals';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { Pseudonyms } from '../../src/observability/Pseudonyms.js';

it('a name stays the same until the key is rotated, and is another one afterwards', () => {
  const sealer = new Sealer({ from: 'client-secret', secret: new Secret('before') });
  const pseudonyms = new Pseudonyms(sealer);
  const names = () => [pseudonyms.caller('ada'), pseudonyms.taxpayer('ada')];
  const [caller, taxpayer] = names();
  expect(names()).toEqual([caller, taxpayer]);
  sealer.rotate({ from: 'client-secret', secret: new Secret('after') });
  expect(new Set([...names(), caller, taxpayer]).size).toBe(4);
});
