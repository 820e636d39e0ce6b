import type { Fault } from './fault.js';

/**
 * One fault of every kind the sandbox has, with `secret` wherever the service chooses the text. A new kind is a compile error
 * until it is added here. Faults after which the gateway pauses its calls to the service come last.
 */
export function faultSamples(secret: string): readonly Fault[] {
  const samples: { readonly [Kind in Fault['kind']]: Fault & { readonly kind: Kind } } = {
    redirect: { kind: 'redirect', status: 302, location: `https://evil.example/${secret}` },
    'answer-with-html': { kind: 'answer-with-html' },
    'answer-with-text-that-is-not-json': { kind: 'answer-with-text-that-is-not-json' },
    'answer-with-null': { kind: 'answer-with-null' },
    'answer-with-empty-body': { kind: 'answer-with-empty-body' },
    'never-answer': { kind: 'never-answer' },
    'answer-late': { kind: 'answer-late', afterMs: 100 },
    'hold-until-released': { kind: 'hold-until-released', gate: 'never' },
    'drip-body': { kind: 'drip-body', everyMs: 20 },
    'reset-before-effect': { kind: 'reset-before-effect' },
    'reset-after-effect': { kind: 'reset-after-effect' },
    'truncate-body': { kind: 'truncate-body' },
    'close-after-answer': { kind: 'close-after-answer' },
    'give-wrong-type': { kind: 'give-wrong-type', value: { secret } },
    'omit-field': { kind: 'omit-field' },
    'answer-for-other-taxpayer': { kind: 'answer-for-other-taxpayer' },
    'answer-for-other-job': { kind: 'answer-for-other-job' },
    'give-unknown-enum-value': { kind: 'give-unknown-enum-value' },
    'give-invalid-utf8': { kind: 'give-invalid-utf8' },
    'answer-with-wrong-content-type': { kind: 'answer-with-wrong-content-type' },
    'answer-with-wrong-success-status': { kind: 'answer-with-wrong-success-status' },
    'answer-with-huge-body': { kind: 'answer-with-huge-body', bytes: 3_000_000 },
    'nest-deeply': { kind: 'nest-deeply', levels: 20_000 },
    'answer-with-gzip-bomb': { kind: 'answer-with-gzip-bomb', bytes: 20_000_000 },
    'answer-with-broken-gzip': { kind: 'answer-with-broken-gzip' },
    'answer-with-status': {
      kind: 'answer-with-status',
      status: 400,
      headers: { 'x-echo': secret, 'set-cookie': `session=${secret}` },
      body: JSON.stringify({ error: secret, authorization: `Bearer ${secret}` }),
    },
    'refuse-authorization': { kind: 'refuse-authorization' },
  };
  return Object.values(samples);
}
