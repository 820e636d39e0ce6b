import { comparePlans } from '../support/comparePlans.js';
import { run } from '../support/run.js';

/** How long each search may go on at night; NIGHTLY_MINUTES says otherwise. */
const minutes = Number(process.env['NIGHTLY_MINUTES'] ?? 10);

describe('Campaigns', () => {
  it(
    'the simulated fleet keeps its promises for the seeds of today',
    async () => {
      const simulate = run('npm', ['run', '--silent', 'simulate', '--', '--minutes', String(minutes)]);
      const { stdout } = await simulate.catch((failure: { readonly stdout: string }) => failure);
      expect(stdout).toMatch(/^[1-9]\d* ran, 0 failed from seed \d+ in /m);
    },
    (minutes + 5) * 60_000,
  );

  it(
    'plans answer generated queries as Apollo Server does, byte for byte',
    async () => {
      const endAt = performance.now() + minutes * 60_000;
      for (let seed = Math.floor(Date.now() / 1000); performance.now() < endAt; seed += 1) {
        expect({ seed, ...(await comparePlans(2000, seed)) }).toEqual({
          seed,
          byPlan: expect.any(Number),
          difference: undefined,
        });
      }
    },
    (minutes + 5) * 60_000,
  );

  it('honest callers are served beside every attack of one hostile caller, and beside all at once', async () => {
    const { stdout } = await run('npm', ['run', '--silent', 'bench:hostile', '--', '--quick']);
    expect(stdout).toContain('| all at once |');
  }, 900_000);

  it.each([
    ['a fleet of four processes', [], '| redis-dead | 4 |'],
    ['a month', ['--month'], '| learned |'],
  ])(
    '%s makes no more token calls than are promised',
    async (_, options, row) => {
      const { stdout } = await run('npm', ['run', '--silent', 'bench:sparing', '--', '--check', ...options]);
      expect(stdout).toContain(row);
    },
    900_000,
  );
});
