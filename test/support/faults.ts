import { gzipSync } from 'node:zlib';
import type { Answer } from '../../src/sandbox/answers.js';
import type { ApiEndpoint, Received } from '../../src/sandbox/endpoints.js';
import { type Fault, upstreamOnlyText, withBody, withMembers } from './fault.js';

/** The member of each record that tells most when it is missing or of a wrong type. */
const telling: Readonly<Record<ApiEndpoint, string>> = {
  createClientLink: 'url',
  taxpayerToken: 'access_token',
  refreshJob: 'status',
};
const tellingOf = ({ route }: Received) => telling[route.endpoint as ApiEndpoint];
/** By hand: JSON.stringify would overflow the stack long before JSON.parse does. Shorter than 1 MiB. */
const nested = `${'{"d":'.repeat(100_000)}null${'}'.repeat(100_000)}`;
const otherTaxpayer = '11111111-1111-4111-8111-111111111111';

/** Answers that break the contract, by the names that faultTable.json calls them. */
export const faults = {
  html: {
    status: 200,
    headers: { 'content-type': 'text/html' },
    body: `<!doctype html><title>Sign in</title><p>${upstreamOnlyText}</p>`,
  },
  notJson: { body: `{"text":"${upstreamOnlyText}` },
  null: { body: 'null' },
  empty: { body: '' },
  memberMissing: { change: (answer, call) => withMembers(answer, { [tellingOf(call)]: undefined }) },
  wrongType: { change: (answer, call) => withMembers(answer, { [tellingOf(call)]: 42 }) },
  /** Latin-1 writes ÿþ as the bytes FF FE, which no UTF-8 text contains. */
  notUtf8: {
    set: { name: 'ÿþ', url: 'ÿþ' },
    change: (answer) => withBody(answer, Buffer.from(answer.body.toString(), 'latin1')),
  },
  otherSuccessStatus: { change: (answer) => ({ ...answer, status: answer.status === 201 ? 200 : 201 }) },
  otherTaxpayer: { set: { taxpayer_id: otherTaxpayer, taxpayerId: otherTaxpayer } },
  otherJob: { set: { jobId: 'eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee' } },
  unknownStatus: { set: { status: 'VALUE_FROM_THE_FUTURE' } },
  textPlain: { headers: { 'content-type': 'text/plain' } },
  deepMetadata: {
    set: { metadata: undefined },
    change: (answer) => withBody(answer, `${answer.body.toString().slice(0, -1)},"metadata":${nested}}`),
  },
  noDate: { set: { created_at: 'soon' } },
  deepBody: { body: nested },
  huge: { change: (answer) => padded(answer, 5_000_000) },
  hugeInChunks: {
    change: (answer) => {
      const { 'content-length': _, ...headers } = answer.headers;
      return { ...padded(answer, 50_000_000), headers };
    },
  },
  /** Members of gzip may follow one another, so that one mebibyte of spaces is repeated. */
  gzipBomb: {
    headers: { 'content-encoding': 'gzip' },
    change: (answer) => {
      const member = gzipSync(Buffer.alloc(1_048_576, ' '));
      return withBody(answer, Buffer.concat([...Array<Buffer>(500).fill(member), gzipSync(answer.body)]));
    },
  },
  brokenGzip: { body: 'no gzip', headers: { 'content-encoding': 'gzip' } },
} satisfies Record<string, Fault>;

/** JSON may begin with white space. */
function padded(answer: Answer, bytes: number): Answer {
  return withBody(answer, Buffer.concat([Buffer.alloc(bytes - answer.body.length, ' '), answer.body]));
}

/**
 * Every kind of fault by its name, with `secret` wherever the service chooses the text. Those after which the gateway pauses its
 * calls to the service come last.
 */
export function faultSamples(secret: string): Readonly<Record<string, Fault>> {
  return {
    ...faults,
    wrongText: { set: { access_token: { secret }, url: { secret }, status: { secret } } },
    redirect: { status: 302, headers: { location: `https://evil.example/${secret}` } },
    late: { delayMs: 100 },
    never: { gate: 'never' },
    drip: { dripMs: 20 },
    reset: { cut: 'before' },
    half: { cut: 'half' },
    closed: { cut: 'after' },
    rejected: {
      status: 400,
      headers: { 'x-echo': secret, 'set-cookie': `session=${secret}` },
      body: JSON.stringify({ error: secret, authorization: `Bearer ${secret}` }),
    },
    refused: { status: 401 },
  };
}
