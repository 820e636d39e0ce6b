import type { TaxpayerId } from '../../../src/datasources/identifiers.js';
import { type Member, outcomeOf, startFleet } from '../../support/fleet.js';

const forbidden = { status: 403 } as const;

describe('A 403 of the service to the client credentials', () => {
  async function scene() {
    const fleet = await startFleet({ size: 2, BREAKER_RESET_MS: 30_000 });
    const ids = fleet.addTaxpayers(8);
    const read = ({ broker }: Member, n: number, holder?: string) =>
      outcomeOf(broker.record(ids[n] as TaxpayerId, { holder }));
    const create = ({ links }: Member, n: number, holder?: string) =>
      outcomeOf(links.create({ metadata: { n } }, undefined, { holder }));
    const readJob = ({ jobs }: Member, n: number, holder?: string) => {
      const taxpayerId = ids[n] as TaxpayerId;
      return outcomeOf(jobs.status(taxpayerId, fleet.addJob(taxpayerId), { holder }));
    };
    return { ...fleet, ids, read, create, readJob };
  }

  it('is told to its caller and pauses nobody: neither other requests, nor the fleet', async () => {
    const { one, two, sandbox, ids, read, create } = await scene();
    sandbox.arm({ endpoint: 'taxpayerToken', fault: forbidden, taxpayerId: ids[0] });
    for (let n = 0; n < 4; n += 1) expect(await read(one, 0)).toBe('UPSTREAM_CREDENTIALS_REJECTED');
    expect(sandbox.counters().taxpayerToken).toBe(2); // a record that cannot be read is asked for more seldom
    for (const n of [1, 2]) expect(await read(one, n)).toBe('answered');
    expect(await read(two, 3)).toBe('answered');
    expect(await create(one, 4)).toBe('answered');
  });

  it.each(['taxpayerToken', 'createClientLink'] as const)(
    'on five requests of one caller to %s in a row stops the calls of that caller there, and of no other',
    async (endpoint) => {
      const { one, sandbox, advance, read, create } = await scene();
      const [closed, open] = endpoint === 'taxpayerToken' ? [read, create] : [create, read];
      sandbox.arm({ endpoint, fault: forbidden, times: 5 });
      for (const n of [0, 1, 2, 3, 4]) expect(await closed(one, n, 'hostile')).toBe('UPSTREAM_CREDENTIALS_REJECTED');
      expect(await closed(one, 5, 'hostile')).toBe('UPSTREAM_UNAVAILABLE');
      expect(sandbox.requests(endpoint)).toHaveLength(5);
      expect(await open(one, 6, 'hostile')).toBe('answered');
      expect(await closed(one, 7, 'honest')).toBe('answered');
      advance(30_000);
      expect(await closed(one, 5, 'hostile')).toBe('answered');
    },
  );

  it('is told from one to the token of a taxpayer, which is about that taxpayer and stops no calls', async () => {
    const { one, sandbox, readJob } = await scene();
    sandbox.arm({ endpoint: 'refreshJob', fault: forbidden, times: 6 });
    for (const n of [0, 1, 2, 3, 4, 5]) expect(await readJob(one, n, 'one')).toBe('TAXPAYER_NOT_AUTHORIZED');
    expect(await readJob(one, 6, 'one')).toBe('answered');
  });
});

it('A late refusal of a client secret that was rotated does not close the endpoint for the new one', async () => {
  const { sandbox, one, addTaxpayer, rotateSecret } = await startFleet();
  const { broker, links } = one;
  const read = () => outcomeOf(broker.record(addTaxpayer()));
  sandbox.setClientSecret('rotated');
  sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'late' }, times: 1 });
  const late = read();
  await sandbox.whenCalled('taxpayerToken', 1);
  rotateSecret('rotated');
  sandbox.release('late');
  expect(await late).toBe('UPSTREAM_CREDENTIALS_REJECTED');
  expect(await read()).toBe('answered');
  expect((await links.create({}, undefined)).replayed).toBe(false);
});
