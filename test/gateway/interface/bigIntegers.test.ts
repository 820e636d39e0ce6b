import { environmentFor, startTestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { transports } from '../../support/transports.js';

// A double holds each integer below 2^53. Of the others it holds only some, and those between would arrive as their neighbours.

const document = 'mutation ($input: CreateClientLinkInput!) { createClientLink(input: $input) { replayed } }';

function bodyWith(metadata: string) {
  return `{"query":${JSON.stringify(document)},"variables":{"input":{"metadata":${metadata}}}}`;
}

const gateway = await startTestGateway();
beforeEach(() => gateway.sandbox.resetCounters());

const linksAsked = () => gateway.sandbox.requests('createClientLink').map(({ body }) => body);

/** Answers to such metadata in the document itself, as a value and as a default. */
const inDocument = async (metadata: string) => [
  await gateway.query(`mutation { createClientLink(input: { metadata: ${metadata} }) { replayed } }`),
  await gateway.query(
    `mutation ($m: JSONObject = ${metadata}) { createClientLink(input: { metadata: $m }) { replayed } }`,
  ),
];

describe('a number of 2^53 or more in metadata', () => {
  it.each(['12345678901234567890', ' \n9007199254740993 ', '-9007199254740992', '1e400'])(
    'is refused as a variable and as a literal: %s',
    async (number) => {
      const variable = await transports.HTTP(gateway, bodyWith(`{"a":"1","crmId":${number}}`));
      for (const { errors } of [JSON.parse(variable), ...(await inDocument(`{ a: "1", crmId: ${number} }`))]) {
        expect(errors).toMatchObject([
          { extensions: { code: 'BAD_USER_INPUT', violations: [{ path: 'input.metadata.crmId' }] } },
        ]);
      }
      expect(linksAsked()).toEqual([]);
    },
  );

  it('is refused alone: what a double holds is passed on, and so is all text', async () => {
    for (const metadata of [
      '{"n":[9007199254740991,-9007199254740991,0.1234567890123456,1e-400]}',
      '{"text":["9007199254740993"," 9007199254740993","\\" 9007199254740993","\\\\"," ,9007199254740993"]}',
      '{", 9007199254740993":"\\"","n":1234567890123456}',
    ]) {
      expect(await transports.HTTP(gateway, bodyWith(metadata))).toContain('"replayed":false');
      expect(linksAsked().at(-1)).toBe(`{"metadata":${metadata.replace('1e-400', '0')}}`);
    }
  });

  it('does not become the id of another taxpayer', async () => {
    const { id } = gateway.sandbox.addTaxpayer({ id: '9007199254740992' });
    const query = 'query ($id: ID!) { taxpayer(id: $id) { id } }';
    const body = `{"query":"${query}","variables":{"id":9007199254740993}}`;
    for (const send of [transports.HTTP, transports.WebSocket]) {
      const text = await send(gateway, body);
      expect(text).toContain('"violations":[{"path":"id","message":"does not have the expected type: expected ID"}]');
      expect(text).not.toContain(id);
    }
  });
});

it.each(['{ plan: GOLD, n: 1 }', '{ plan: [GOLD, 1] }'])(
  'a word without quotation marks in metadata is refused: %s',
  async (value) => {
    for (const { errors } of await inDocument(value)) {
      const message = 'A word in JSON must be in quotation marks';
      expect(errors).toMatchObject([{ message, extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }]);
    }
    expect(linksAsked()).toEqual([]);
  },
);

it('a record of the service with such an integer in its metadata keeps everything else, also in the store', async () => {
  const CACHE_URL = `file:${scratch()}`;
  const first = await startTestGateway({ CACHE_URL });
  const body =
    '{"access_token":"t","taxpayer_id":"spoilt","provider_id":"hr","status":"COMPLETED","name":"Ada","metadata":{"ok":1,"crm":{"ids":[1,9007199254740993]}}}';
  first.sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: 'spoilt', fault: { status: 200, body } });
  const query = '{ taxpayerToken(taxpayerId: "spoilt") { name status metadata providerId } }';
  const fetched = await first.query(query);
  await first.gateway.stop();
  const second = await startTestGateway({ ...environmentFor(first.sandbox), CACHE_URL });
  const read = await second.query(query);
  for (const each of [fetched, read]) {
    expect(each.data).toEqual({
      taxpayerToken: { name: 'Ada', status: 'COMPLETED', metadata: null, providerId: 'hr' },
    });
    expect(each.errors).toMatchObject([
      {
        message: 'metadata.crm.ids.1 must be a string: a JSON number of 2^53 or more may lose digits',
        path: ['taxpayerToken', 'metadata'],
        extensions: { code: 'UPSTREAM_INVALID_RESPONSE', retryable: false },
      },
    ]);
  }
  expect(first.sandbox.tokenCalls('spoilt')).toBe(1);
});
