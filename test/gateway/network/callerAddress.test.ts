import type { IncomingMessage } from 'node:http';
import { addressReader } from '../../../src/http/facts.js';
import { linesWith, startTestGateway, type TestGateway, type Texts } from '../../support/gateway.js';

/** The address that the audit line of a creation names. */
async function auditedAddress({ query, logs }: TestGateway, headers: Texts) {
  const before = logs.length;
  const answer = await query('mutation { createClientLink(input: {}) { replayed } }', {}, headers);
  expect(answer.errors).toBeUndefined();
  return linesWith(logs.slice(before), { audit: 'client-link-requested' })[0]?.address;
}

describe('the address of a caller', () => {
  const addressOf = addressReader(['127.0.0.1', '10.0.0.0/8', 'fd00::/8']);
  /** Expects this address of a caller whose request comes from a trusted proxy with these headers. */
  function expectAddress(headers: Texts, address: string) {
    for (const remoteAddress of ['127.0.0.1', '::ffff:127.0.0.1']) {
      const request = { headers, socket: { remoteAddress } } as unknown as IncomingMessage;
      expect(addressOf(request)).toBe(address);
    }
  }

  test.each([
    ['the only one', '203.0.113.7', '203.0.113.7'],
    ['the rightmost that is no proxy’s', '198.51.100.1, 203.0.113.7, 10.1.2.3', '203.0.113.7'],
    ['the leftmost where all are proxies', '10.9.9.9, 10.1.2.3', '10.9.9.9'],
    ['one with a port', '203.0.113.7:4711', '203.0.113.7'],
    ['an IPv4 address in IPv6 form', '::ffff:203.0.113.7, ::ffff:10.1.2.3', '203.0.113.7'],
    ['an IPv6 address with a port', '[2001:db8::7]:4711, fd00::1', '2001:db8::7'],
    ['the twentieth proxy’s', `203.0.113.7, 10.2.2.2, ${'10.1.2.3, '.repeat(18)}10.1.2.3`, '10.2.2.2'],
    ['not a proxy’s with a port', '203.0.113.7, 10.1.2.3:4711, [fd00::1]:80', '203.0.113.7'],
    ['the same however it is written', '2001:0DB8:0:0::1F', '2001:db8::1f'],
    ['not the proxy’s because of a comma too many', '203.0.113.7, , 10.1.2.3,', '203.0.113.7'],
    ['not what is no address, but the peer’s', '198.51.100.1, _hidden', '127.0.0.1'],
    ['not what stands before something that is no address', '198.51.100.1, unknown, 10.1.2.3', '10.1.2.3'],
  ])('is, of those in X-Forwarded-For, %s', (_, forwarded, address) => {
    expectAddress({ 'x-forwarded-for': forwarded }, address);
  });

  test('is the peer’s without that header, also with Forwarded', () => {
    expectAddress({}, '127.0.0.1');
    expectAddress({ forwarded: 'for=203.0.113.7' }, '127.0.0.1');
    expectAddress({ forwarded: 'for=198.51.100.1', 'x-forwarded-for': '203.0.113.7' }, '203.0.113.7');
  });

  test('is in the audit line of what it does, alone', async () => {
    const gateway = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' });
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.7, 10.1.2.3' };
    expect(await auditedAddress(gateway, headers)).toBe('203.0.113.7');
    expect(await auditedAddress(gateway, { forwarded: 'for=203.0.113.7' })).toBe('127.0.0.1');
    expect(linesWith(gateway.logs, { address: '203.0.113.7' })).toHaveLength(1);
  });

  test('is the peer’s where the peer is not trusted', async () => {
    const gateway = await startTestGateway({ TRUSTED_PROXIES: '10.0.0.0/8' });
    expect(await auditedAddress(gateway, { 'x-forwarded-for': '203.0.113.7' })).toBe('127.0.0.1');
  });

  test('is in no audit line without TRUSTED_PROXIES, and no header is looked at', async () => {
    const gateway = await startTestGateway();
    expect(await auditedAddress(gateway, { 'x-forwarded-for': '203.0.113.7' })).toBeUndefined();
    expect(gateway.output()).not.toContain('203.0.113.7');
  });

  test('is what the limits of callers without an identity count for', async () => {
    const gateway = await startTestGateway({ TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '2' });
    const statusFor = async (address: string) =>
      (await gateway.query('{ __typename }', {}, { 'x-forwarded-for': address })).status;
    for (const address of ['203.0.113.7', '203.0.113.8', '2001:db8:1:2::', '2001:db8:1:3::']) {
      const statuses: unknown[] = [];
      for (let sent = 0; sent < 5; sent += 1) {
        const host = address.endsWith(':') ? sent : ''; // of one network
        statuses.push(await statusFor(`${address}${host}`)); // may span two minutes
      }
      expect(statuses.slice(0, 2)).toEqual([200, 200]);
      expect(new Set(statuses)).toEqual(new Set([200, 429]));
    }
    expect(await statusFor('203.0.113.7, 203.0.113.9')).toBe(200);
  });

  test('is in the audit line of a refused token', async () => {
    const gateway = await startTestGateway({
      TRUSTED_PROXIES: '127.0.0.1',
      AUTH_MODE: 'jwt',
      AUTH_AUDIENCE: 'gateway',
      AUTH_JWKS_URL: 'http://127.0.0.1:9/',
      AUTH_ISSUER: 'https://id.example/',
    });
    await gateway.query('{ __typename }', {}, { 'x-forwarded-for': '203.0.113.7' });
    expect(linesWith(gateway.logs, { audit: 'token-refused' })[0]).toMatchObject({
      outcome: 'refused',
      address: '203.0.113.7',
    });
  });
});
