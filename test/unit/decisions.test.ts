import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Caller } from '../../src/auth/caller.js';
import {
  type DecisionCall,
  DecisionPoint,
  type DecisionPointOptions,
  type Question,
} from '../../src/auth/DecisionPoint.js';
import { Secret } from '../../src/config/secret.js';
import { type Misbehaviour, startTestDecisionPoint, type TestDecisionPoint } from '../support/decisionPoint.js';
import { restorePlatform } from '../support/platform.js';
import { until } from '../support/until.js';
import { VirtualTime } from '../support/VirtualTime.js';

const caller: Caller = {
  kind: 'bearer',
  key: 'key-of-ada',
  subject: 'ada',
  scopes: new Set(),
  taxpayers: new Set(),
  properties: { issuer: 'https://id.example', tenant: 'acme' },
  expiresAt: Infinity,
};
const asker = { subject: 'ada', properties: { tenant: 'acme' }, operation: 'taxpayerToken', requestId: 'request-1' };
const first: Question = { action: 'taxpayers:read', taxpayer: 'taxpayer-1' };
const second: Question = { action: 'refresh-jobs:read', taxpayer: 'taxpayer-2' };
const ttlMs = 60_000;

describe('The decision point, as it is asked', () => {
  let point: TestDecisionPoint;
  let time: VirtualTime;
  let calls: DecisionCall[];
  let decided: string[];

  beforeAll(async () => {
    point = await startTestDecisionPoint();
    point.allow('ada', ['taxpayer-1', 'taxpayer-2']);
  });
  afterAll(() => point.stop());
  beforeEach(() => {
    point.behave(undefined);
    point.asked.length = 0;
    time = new VirtualTime(1_700_000_000_000);
    time.install();
    calls = [];
    decided = [];
  });

  afterEach(restorePlatform);

  const open = (options: Partial<DecisionPointOptions> = {}) =>
    new DecisionPoint({
      url: point.url,
      token: undefined,
      tokenFile: undefined,
      ttlMs,
      onCall: (call) => calls.push(call),
      onDecided: (isAllowed, from) => decided.push(`${isAllowed ? 'allowed' : 'refused'}, ${from}`),
      ...options,
    });
  const pass = (ms: number) => time.runUntil(time.now + ms);

  it('gets one question at evaluation, with the address written in any way', async () => {
    const decisions = open({ url: `${point.url}//`, token: new Secret('planted') });
    expect(await decisions.ask(caller, asker, [first])).toEqual([{ isAllowed: true, until: ttlMs }]);
    expect(point.asked).toEqual([
      {
        url: '/pdp/access/v1/evaluation',
        headers: expect.objectContaining({
          accept: 'application/json',
          authorization: 'Bearer planted',
          'content-type': 'application/json',
          'x-request-id': 'request-1',
        }),
        body: {
          subject: { type: 'user', id: 'ada', properties: { tenant: 'acme' } },
          context: { operation: 'taxpayerToken' },
          action: { name: 'taxpayers:read' },
          resource: { type: 'taxpayer', id: 'taxpayer-1' },
        },
      },
    ]);
    expect(calls).toEqual([{ endpoint: 'evaluation', outcome: 'ok', cause: undefined, seconds: 0 }]);
  });

  it('gets several at evaluations, and decides each', async () => {
    const decisions = open();
    const third: Question = { action: 'taxpayers:read', taxpayer: 'of-another' };
    expect(await decisions.ask(caller, asker, [first, third, second])).toEqual([
      { isAllowed: true, until: ttlMs },
      { isAllowed: false, until: 5000 },
      { isAllowed: true, until: ttlMs },
    ]);
    expect(point.asked.map(({ url }) => url)).toEqual(['/pdp/access/v1/evaluations']);
    expect(decided).toEqual(['allowed, asked', 'refused, asked', 'allowed, asked']);
    expect(calls).toEqual([{ endpoint: 'evaluations', outcome: 'ok', cause: undefined, seconds: 0 }]);
  });

  it.each([
    ['none', undefined, undefined],
    ['one without a scheme', 'planted', 'Bearer planted'],
    ['one with a scheme', 'Basic cGxhbnRlZA==', 'Basic cGxhbnRlZA=='],
    ['one that is no token', 'three planted words', undefined],
  ])('is shown its token: %s', async (_, token, authorization) => {
    await open({ token: token === undefined ? undefined : new Secret(token) }).ask(caller, asker, [first]);
    expect(point.asked[0]?.headers.authorization).toBe(authorization);
  });

  it('is asked once for what several ask at the same time, and answers are remembered for their time', async () => {
    const decisions = open();
    const both = await Promise.all([
      decisions.ask(caller, asker, [first]),
      decisions.ask(caller, asker, [first, second]),
      decisions.ask(caller, asker, [second]),
    ]);
    expect(both.map((each) => each.length)).toEqual([1, 2, 1]);
    expect(point.asked.length).toBe(2);
    await pass(ttlMs - 1);
    expect(decisions.known(caller, 'taxpayerToken', first)).toEqual({ isAllowed: true, until: ttlMs });
    await decisions.ask(caller, asker, [first]);
    expect(point.asked.length).toBe(2);
    await pass(1);
    expect(decisions.known(caller, 'taxpayerToken', first)).toBeUndefined();
    expect(await decisions.ask(caller, asker, [first])).toEqual([{ isAllowed: true, until: 2 * ttlMs }]);
    expect(point.asked.length).toBe(3);
  });

  it('is asked again five seconds after a refusal', async () => {
    const decisions = open();
    point.allow('ada', []);
    await decisions.ask(caller, asker, [first]);
    point.allow('ada', ['taxpayer-1', 'taxpayer-2']);
    expect(decisions.known(caller, 'taxpayerToken', first)).toEqual({ isAllowed: false, until: 5000 });
    expect(decided).toEqual(['refused, asked', 'refused, remembered']);
    await pass(5000);
    await decisions.ask(caller, asker, [first]);
    expect(decisions.known(caller, 'taxpayerToken', first)).toEqual({ isAllowed: true, until: 5000 + ttlMs });
  });

  it('decides for one caller, operation, action and taxpayer, and what is told of the caller', async () => {
    const decisions = open();
    await decisions.ask(caller, asker, [first]);
    const isKnown = (who: Caller, operation: string, question: Question) =>
      decisions.known(who, operation, question) !== undefined;
    expect(isKnown(caller, 'taxpayerToken', first)).toBe(true);
    expect(isKnown({ ...caller }, 'taxpayerToken', first)).toBe(true);
    expect(isKnown({ ...caller, key: 'another' }, 'taxpayerToken', first)).toBe(false);
    expect(isKnown({ ...caller, properties: {} }, 'taxpayerToken', first)).toBe(false);
    expect(isKnown(caller, 'refreshJob', first)).toBe(false);
    expect(isKnown(caller, 'taxpayerToken', { ...first, action: 'refresh-jobs:read' })).toBe(false);
    expect(isKnown(caller, 'taxpayerToken', { ...first, taxpayer: 'taxpayer-2' })).toBe(false);
  });

  it.each<[Misbehaviour, number, string, string]>([
    ['cuts the connection', 2, 'network', 'ECONNRESET'],
    ['answers 408', 2, 'network', 'HTTP 408'],
    ['answers 500', 1, 'status', 'HTTP 500'],
    ['redirects', 1, 'redirect', 'redirects are not followed'],
    ['answers 200 with HTML', 1, 'wrong-shape', 'the answer does not decide what was asked'],
    ['leaves the decision out', 1, 'wrong-shape', 'the answer does not decide what was asked'],
    ['decides too little', 1, 'wrong-shape', 'the answer does not decide what was asked'],
    ['decides too much', 1, 'wrong-shape', 'the answer does not decide what was asked'],
    ['decides about another subject', 1, 'other-question', 'the answer is about something else'],
    ['decides about another taxpayer', 1, 'other-question', 'the answer is about something else'],
    ['decides about another action', 1, 'other-question', 'the answer is about something else'],
    ['sends more than a megabyte', 1, 'too-large', 'larger than 1048576 bytes'],
  ])('decides nothing when it %s', async (misbehaviour, asked, outcome, cause) => {
    const decisions = open();
    point.behave(misbehaviour);
    const answers = await decisions.ask(caller, asker, [first, second]);
    expect(answers).toHaveLength(2);
    for (const answer of answers) expect(answer).toMatchObject(unavailable(cause));
    expect(point.asked.length).toBe(asked);
    expect(calls).toEqual(Array(asked).fill({ endpoint: 'evaluations', outcome, cause, seconds: 0 }));
    point.behave(undefined);
    expect(await decisions.ask(caller, asker, [first])).toMatchObject([{ isAllowed: true }]);
  });

  it('decides nothing when it has not answered after a second', async () => {
    const decisions = open();
    point.behave('does not answer');
    const answers = decisions.ask(caller, asker, [first]);
    await until(() => point.asked.length === 1);
    await pass(1001);
    expect(await answers).toMatchObject([unavailable('no answer in time')]);
    expect(calls).toEqual([{ endpoint: 'evaluation', outcome: 'timeout', cause: 'no answer in time', seconds: 1 }]);
  });

  it('tells when the time of a decision is over', async () => {
    const decisions = open();
    const told: string[] = [];
    await pass(1000);
    decisions.whenOver({ isAllowed: true, until: 3000 }, () => told.push('over'));
    decisions.whenOver({ isAllowed: true, until: 3000 }, () => told.push('cancelled'))();
    decisions.whenOver({ isAllowed: true, until: 500 }, () => told.push('over before'));
    await pass(1);
    expect(told).toEqual(['over before']);
    await pass(1998);
    expect(told).toEqual(['over before']);
    await pass(2);
    expect(told).toEqual(['over before', 'over']);
  });
});

function unavailable(cause: string) {
  return {
    code: 'AUTH_UNAVAILABLE',
    message: 'The decision point cannot say at the moment whether the caller may see this taxpayer',
    retryAfterSeconds: 1,
    reason: `decision point: ${cause}`,
    extensions: { http: { status: 503 } },
  };
}
