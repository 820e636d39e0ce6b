import { comparePlans } from '../../support/comparePlans.js';

it('300 generated queries are answered by plans as by Apollo Server, byte for byte', async () => {
  const { difference, byPlan } = await comparePlans(300, 20_261);
  expect(difference).toBeUndefined();
  expect(byPlan).toBeGreaterThan(100);
});
