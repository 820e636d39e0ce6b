import { afterEach, describe, expect, it } from '@jest/globals';
import { type Fleet, type Member, outcomeOf, startFleet } from '../../support/fleet.js';

const forbidden = { status: 403 } as const;

describe('A 403 of the service', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  async function scene() {
    fleet = await startFleet({ size: 2 });
    const { control } = fleet.sandbox;
    const [one, two] = fleet.members;
    if (!one || !two) throw new Error('The fleet has two members');
    const ids = control.addTaxpayers(8).map((id) => fleet.ids.taxpayerId(id));
    const read = ({ broker }: Member, n: number, holder?: string) =>
      outcomeOf(broker.record(ids[n] as (typeof ids)[number], undefined, { holder }));
    const create = ({ links }: Member, n: number, holder?: string) =>
      outcomeOf(links.create({ metadata: { n } }, undefined, { holder }));
    return { one, two, control, ids, read, create };
  }

  it('is about the one request that met it: the others go on', async () => {
    const { one, two, control, ids, read } = await scene();
    control.arm({ endpoint: 'taxpayerToken', fault: forbidden, taxpayerId: ids[0] });
    for (let n = 0; n < 4; n += 1) expect(await read(one, 0)).toBe('UPSTREAM_REJECTED');
    expect(await read(one, 1)).toBe('answered');
    expect(await read(two, 2)).toBe('answered');
  });

  it('on the same body of a link again and again is about that body', async () => {
    const { one, control, create } = await scene();
    control.arm({ endpoint: 'createClientLink', fault: forbidden, times: 4 });
    for (let n = 0; n < 4; n += 1) expect(await create(one, 0)).toBe('UPSTREAM_REJECTED');
    expect(await create(one, 1)).toBe('answered');
  });

  it.each(['taxpayerToken', 'createClientLink'] as const)(
    'on three different requests to %s in a row is about the credentials, and closes that endpoint for 30 seconds',
    async (endpoint) => {
      const { one, two, control, read, create } = await scene();
      const [closed, open] = endpoint === 'taxpayerToken' ? [read, create] : [create, read];
      control.arm({ endpoint, fault: forbidden, times: 3 });
      expect(await closed(one, 0)).toBe('UPSTREAM_REJECTED');
      expect(await closed(one, 1)).toBe('UPSTREAM_REJECTED');
      expect(await closed(one, 2)).toBe('UPSTREAM_CREDENTIALS_REJECTED');
      expect(await closed(two, 3)).toBe('UPSTREAM_CREDENTIALS_REJECTED');
      expect(control.requests(endpoint)).toHaveLength(3);
      expect(await open(two, 4)).toBe('answered');
      fleet.advance(30_000);
      expect(await closed(two, 3)).toBe('answered');
    },
  );

  it('says nothing about the credentials with another answer, or more than 30 seconds, between', async () => {
    const { one, control, ids, read } = await scene();
    for (const n of [0, 1, 3, 4]) control.arm({ endpoint: 'taxpayerToken', fault: forbidden, taxpayerId: ids[n] });
    expect([await read(one, 0), await read(one, 1)]).toEqual(Array(2).fill('UPSTREAM_REJECTED'));
    expect(await read(one, 2)).toBe('answered');
    expect([await read(one, 3), await read(one, 4)]).toEqual(Array(2).fill('UPSTREAM_REJECTED'));
    fleet.advance(30_000);
    expect([await read(one, 0), await read(one, 1)]).toEqual(Array(2).fill('UPSTREAM_REJECTED'));
    expect(await read(one, 5)).toBe('answered');
  });

  it('on three different requests of one caller stops the calls of that caller, and of no other', async () => {
    const { one, control, read } = await scene();
    control.arm({ endpoint: 'taxpayerToken', fault: forbidden, times: 3 });
    for (const n of [0, 1]) expect(await read(one, n, 'hostile')).toBe('UPSTREAM_REJECTED');
    for (const n of [2, 3]) expect(await read(one, n, 'hostile')).toBe('UPSTREAM_CREDENTIALS_REJECTED');
    expect(control.counters().taxpayerToken).toBe(3);
    expect(await read(one, 4, 'honest')).toBe('answered');
    fleet.advance(30_000);
    expect(await read(one, 3, 'hostile')).toBe('answered');
  });

  it('on different requests of three callers in a row is about the credentials', async () => {
    const { one, two, control, read } = await scene();
    control.arm({ endpoint: 'taxpayerToken', fault: forbidden, times: 3 });
    for (const n of [0, 1]) expect(await read(one, n, `caller-${n}`)).toBe('UPSTREAM_REJECTED');
    expect(await read(one, 2, 'caller-2')).toBe('UPSTREAM_CREDENTIALS_REJECTED');
    expect(await read(two, 3, 'caller-3')).toBe('UPSTREAM_CREDENTIALS_REJECTED');
    expect(control.counters().taxpayerToken).toBe(3);
  });
});

describe('A late refusal of a client secret that was rotated', () => {
  let fleet: Fleet;
  afterEach(() => fleet.stop());

  it('does not close the endpoint for the new one', async () => {
    fleet = await startFleet();
    const { control } = fleet.sandbox;
    const [member] = fleet.members;
    const [first, second] = control.addTaxpayers(2).map((id) => fleet.ids.taxpayerId(id));
    if (!member || !first || !second) throw new Error('The fleet has a member and two taxpayers');
    control.setClientSecret('rotated');
    control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'late' }, times: 1 });
    const late = outcomeOf(member.broker.record(first));
    await control.whenCalled('taxpayerToken', 1);
    fleet.rotateSecret('rotated');
    control.release('late');
    expect(await late).toBe('UPSTREAM_CREDENTIALS_REJECTED');
    expect(await outcomeOf(member.broker.record(second))).toBe('answered');
    expect((await member.links.create({}, undefined)).replayed).toBe(false);
  });
});
