import { FairQueue, type FairQueueOptions } from '../../src/admission/FairQueue.js';
import type { Release } from '../../src/admission/Ledger.js';

const options: FairQueueOptions = { things: 'calls', perHolder: 2, perProcess: 4, maxWaiting: 3, maxWaitMs: 200 };

const queueOf = (changes: Partial<FairQueueOptions> = {}) => new FairQueue({ ...options, ...changes });

/** Those admitted so far, in order, with what gives each place back. */
function admissions(queue: FairQueue) {
  const admitted: { readonly name: string; readonly release: Release }[] = [];
  const enter = (holder: string | undefined, name: string) => {
    const entering = (async () => admitted.push({ name, release: await queue.enter(holder) }))();
    entering.catch(() => {}); // of those nobody asks about
    return entering;
  };
  return { admitted, enter, names: () => admitted.map(({ name }) => name) };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('A fair queue', () => {
  it('admits at once, without a promise, while there is a place', () => {
    expect(queueOf().enter('alice')).toBeInstanceOf(Function);
  });

  it('gives no holder more than its share, though the process has room', async () => {
    const { enter, names } = admissions(queueOf());
    for (const name of ['a1', 'a2', 'a3']) void enter('alice', name);
    void enter('bob', 'b1');
    await settled();
    expect(names()).toEqual(['a1', 'a2', 'b1']);
  });

  it('gives free places to the holders in turn, whoever has more waiting', async () => {
    const { enter, names, admitted } = admissions(queueOf({ perHolder: 1, perProcess: 1, maxWaiting: 10 }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void enter('alice', name);
    for (const name of ['b1', 'b2']) void enter('bob', name);
    for (let freed = 0; freed < 6; freed += 1) {
      await settled();
      admitted[freed]?.release();
    }
    expect(names()).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('refuses a holder who has too many waiting, and nobody else', async () => {
    const queue = queueOf({ perHolder: 1, maxWaiting: 1 });
    const { enter, names } = admissions(queue);
    void enter('alice', 'a1');
    void enter('alice', 'a2');
    await expect(enter('alice', 'a3')).rejects.toMatchObject({ code: 'RATE_LIMITED', httpStatus: 429 });
    await enter('bob', 'b1');
    expect(names()).toEqual(['a1', 'b1']);
  });

  it('bounds callers without an identity by the places of the process alone', async () => {
    const { enter, names } = admissions(queueOf());
    for (const name of ['1', '2', '3', '4', '5']) void enter(undefined, name);
    await settled();
    expect(names()).toEqual(['1', '2', '3', '4']);
  });

  it("gives each holder a sixteenth while they are in each other's way, and one place at least", async () => {
    let isContended = true;
    const queue = queueOf({ perHolder: 32, perProcess: 100, maxWaiting: 20, isContended: () => isContended });
    const { enter, names, admitted } = admissions(queue);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void enter('alice', name);
    await settled();
    expect(names()).toEqual(['a1', 'a2']);
    for (const { release } of [...admitted]) release();
    await settled();
    expect(names()).toEqual(['a1', 'a2', 'a3', 'a4']);
    isContended = false;
    admitted[2]?.release();
    await settled();
    expect(names()).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
  });

  it('refuses whoever has waited too long', async () => {
    const { enter } = admissions(queueOf({ perHolder: 1, maxWaitMs: 10 }));
    await enter('alice', 'a1');
    await expect(enter('alice', 'a2')).rejects.toMatchObject({ code: 'RATE_LIMITED', retryAfterSeconds: 1 });
  });

  it('takes a place back once, however often it is given back', async () => {
    const queue = queueOf();
    const release = await queue.enter('alice');
    release();
    release();
    expect(queue.running).toBe(0);
  });
});
