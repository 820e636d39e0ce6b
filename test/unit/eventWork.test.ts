import { afterEach, describe, expect, it } from '@jest/globals';
import { buildSchema, type GraphQLObjectType } from 'graphql';
import { Admission } from '../../src/admission/Admission.js';
import { boundsFor, Ledger } from '../../src/admission/Ledger.js';
import { WorkTime } from '../../src/admission/WorkTime.js';
import { anyone, type Caller, holderOf } from '../../src/auth/caller.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { createLogger } from '../../src/observability/log.js';
import { Trail } from '../../src/observability/Trail.js';
import { requestOf } from '../../src/operations/GraphQLRequest.js';
import { Pipeline } from '../../src/operations/Pipeline.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';

const spin = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};
const callerOf = (key: string): Caller => ({ ...anyone, kind: 'bearer', key });
const [busy, other] = [callerOf('busy'), callerOf('other')];

describe('the time that events of a subscription take', () => {
  let stop = async () => {};
  afterEach(() => stop());

  /** Events on an event loop that has little time left. `query` asks for fields of each `tick`. */
  async function scene(query: string, events: number, tickOf: () => unknown) {
    const many = Array.from({ length: 500 }, (_, n) => `f${n}: Int`).join(' ');
    const schema = buildSchema(
      `type Query { a: Int } type Subscription { tick: Tick } type Tick { slow: Int ${many} }`,
    );
    const { tick } = schema.getSubscriptionType()?.getFields() ?? {};
    const { slow } = (schema.getType('Tick') as GraphQLObjectType).getFields();
    if (tick) {
      tick.subscribe = async function* () {
        for (let n = 0; n < events; n += 1) yield { tick: tickOf };
      };
    }
    if (slow) slow.resolve = () => spin(40);
    const store = new SealedStore({
      store: new MemoryStore(),
      sealer: new Sealer({ from: 'client-secret', secret: new Secret('x') }),
      scope: [],
    });
    const workTime = new WorkTime({ now: () => 0, utilization: () => 0.9, ranShare: () => 1 });
    const admission = new Admission({ store, perMinute: 1000, workTime });
    const { limits } = loadConfig({ CACHE_URL: 'memory:' });
    const ignore = () => {};
    const hooks = { onRequest: ignore, onExecution: ignore, onError: ignore, onBug: ignore, onEnd: ignore };
    const pipeline = new Pipeline({
      schema,
      limits,
      introspection: true,
      trustedDocuments: undefined,
      admission,
      ledger: new Ledger(boundsFor(limits)),
      contextFor: ({ caller, requestId }) => ({
        ...{ requestId, holder: holderOf(caller), trail: new Trail(), maxAnswerBytes: 100_000 },
      }),
      hooks: { ...hooks, observe: () => ignore, logSlowerThanMs: Number.POSITIVE_INFINITY },
      log: createLogger('info', { write: ignore }),
    });
    await pipeline.start();
    stop = async () => {
      admission.stop();
      await pipeline.stop();
    };
    const identity = { caller: busy, fromRouter: undefined, remoteAddress: undefined, peer: undefined };
    const { signal } = new AbortController();
    const asked = requestOf('POST', { query }, 64);
    const operation = pipeline.prepare(asked, { ...identity, requestId: '1', signal, startedAt: 0 }, 'ws');
    const stream = await pipeline.runLive(operation);
    if (!(Symbol.asyncIterator in stream)) throw new Error('expected a stream');
    return { admission, stream };
  }

  it('is their caller’s: who takes too much with them is refused other operations', async () => {
    const { admission, stream } = await scene('subscription { tick { slow } }', 4, () => ({}));
    admission.admit(other, undefined);
    admission.admit(busy, undefined);
    for await (const { bytes } of stream) expect(bytes).toBeGreaterThan(0);
    expect(() => admission.admit(busy, undefined)).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
    expect(() => admission.admit(other, undefined)).not.toThrow();
  });

  it('is estimated by their fields where it follows a wait', async () => {
    const fields = Array.from({ length: 500 }, (_, n) => `f${n}`).join(' ');
    const { admission, stream } = await scene(`subscription { tick { ${fields} } }`, 150, async () => ({}));
    admission.admit(other, undefined);
    admission.admit(busy, undefined);
    for await (const { errors } of stream) expect(errors).toEqual([]);
    expect(() => admission.admit(busy, undefined)).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  });

  it('is given in turns while others ask', async () => {
    const { admission, stream } = await scene('subscription { tick { slow } }', 4, () => ({}));
    admission.admit(other, undefined);
    await admission.admit(busy, undefined);
    let turns = 0;
    const count = () => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    for await (const _ of stream);
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(3);
  });
});
