import { CallQueue } from '../../src/admission/CallQueue.js';
import { boundsFor, Places } from '../../src/admission/Places.js';

const bounds = boundsFor({ connections: 10, answerBytes: 1000 });

function queueOf({ perHolder = 2, perProcess = 4, maxWaiting = 3, maxWaitMs = 200 } = {}) {
  return new CallQueue({ places: new Places({ ...bounds, calls: { perHolder, perProcess } }), maxWaiting, maxWaitMs });
}

/** Runs work that lasts until it is ended; `names` are those begun so far, in order. */
function workOn(queue: CallQueue) {
  const begun: { readonly name: string; readonly end: () => void }[] = [];
  const run = (holder: string | undefined, name: string) => {
    const running = queue.run(holder, () => new Promise<void>((end) => begun.push({ name, end })));
    running.catch(() => {}); // a test that expects a refusal awaits it
    return running;
  };
  return { begun, run, names: () => begun.map(({ name }) => name) };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('The queue of calls', () => {
  it('gives a free place to the holder with the fewest, however much another has waiting', async () => {
    const { run, names, begun } = workOn(queueOf({ perHolder: 2, perProcess: 2, maxWaiting: 10 }));
    for (const name of ['a1', 'a2', 'a3', 'a4']) void run('alice', name);
    for (const name of ['b1', 'b2']) void run('bob', name);
    for (let freed = 0; freed < 6; freed += 1) {
      await settled();
      begun[freed]?.end();
    }
    expect(names()).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
  });

  it('refuses a holder with too much waiting, and nobody else', async () => {
    const queue = queueOf({ perHolder: 1, maxWaiting: 1 });
    const { run, names } = workOn(queue);
    void run('alice', 'a1');
    void run('alice', 'a2');
    await expect(run('alice', 'a3')).rejects.toMatchObject({ code: 'RATE_LIMITED', httpStatus: 429 });
    void run('bob', 'b1');
    expect(names()).toEqual(['a1', 'b1']);
  });

  it('forgets work that waited too long: the place goes to the next', async () => {
    const { run, names, begun } = workOn(queueOf({ perProcess: 1, maxWaitMs: 10 }));
    void run('alice', 'a1');
    await expect(run('bob', 'b1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    void run('carol', 'c1');
    begun[0]?.end();
    await settled();
    expect(names()).toEqual(['a1', 'c1']);
  });
});
