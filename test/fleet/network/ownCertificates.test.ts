import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../../src/config/config.js';
import { demoData } from '../../../src/sandbox/demoData.js';
import { startGateway } from '../../../src/server.js';
import { type CertificateFiles, issueCertificate, makeAuthority } from '../../support/certificate.js';
import { startCollector } from '../../support/collector.js';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import { codesOf, environmentFor, metric, postQuery, spawnGateway, startTestGateway } from '../../support/gateway.js';
import { startIdentityProvider } from '../../support/identityProvider.js';
import { startIssuerMetadata } from '../../support/issuerMetadata.js';
import { startRedis } from '../../support/redis.js';
import { runCommand } from '../../support/runCommand.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { startTlsFront } from '../../support/tlsFront.js';
import { until } from '../../support/until.js';

const directory = scratch();
const file = (name: string) => join(directory, name);
const authority = makeAuthority(directory, 'authority');
const other = makeAuthority(directory, 'other');
const server = authority.issue('server', 'IP:127.0.0.1');
const first = authority.issue('first');
const second = authority.issue('second', undefined, 2);
const inUse = { certFile: file('client.crt'), keyFile: file('client.key') };
const link = 'mutation { createClientLink(input: {}) { replayed } }';
const job = `{ refreshJob(taxpayerId: "${demoData.jobs.processing.taxpayerId}", jobId: "${demoData.jobs.processing.jobId}") { status } }`;

const untrusted = /UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT_LOCALLY)/;

const service = await startSandbox();

function install({ certFile, keyFile }: CertificateFiles) {
  copyFileSync(certFile, inUse.certFile);
  copyFileSync(keyFile, inUse.keyFile);
}

/** A server that lets in clients of the authority only. */
const wantsClients = () => ({ requestCert: true, rejectUnauthorized: true, ca: readFileSync(authority.certFile) });

describe('the service', () => {
  test.each([
    ['is not trusted by the public authorities', {}, {}, untrusted],
    ['is not trusted by a wrong authority', {}, { UPSTREAM_CA_FILE: other.certFile }, untrusted],
    [
      'wants a certificate of ours',
      wantsClients(),
      { UPSTREAM_CA_FILE: authority.certFile },
      /ALERT_CERTIFICATE_REQUIRED/,
    ],
  ])('%s, and a creation is known not to have arrived', async (_, options, env, reason) => {
    const { url } = await startTlsFront(service.url, server, options);
    const { query, output } = await startTestGateway({ UPSTREAM_BASE_URL: url.replace('https', 'HTTPS'), ...env });
    expect(codesOf(await query(link))).toEqual(['UPSTREAM_UNAVAILABLE']);
    expect(output()).toMatch(reason);
  });

  test('is shown a client certificate, renewed under load without a request lost, and not while a file is wrong', async () => {
    install(first);
    const { url, clients, openClients } = await startTlsFront(service.url, server, wantsClients());
    const gateway = await startTestGateway({
      ...{ UPSTREAM_BASE_URL: url, UPSTREAM_CA_FILE: authority.certFile },
      ...{ UPSTREAM_CERT_FILE: inUse.certFile, UPSTREAM_KEY_FILE: inUse.keyFile },
      ...{ RATE_LIMIT_PER_MINUTE: '0', TOKEN_BUDGET_PER_HOUR: '0' },
    });
    const { query, logs, output } = gateway;
    const daysLeft = async () => {
      const expiry = 'gateway_certificate_expiration_timestamp_seconds{setting="UPSTREAM_CERT_FILE"}';
      return ((await metric(gateway, expiry)) - Date.now() / 1000) / 86_400;
    };
    const lost: unknown[] = [];
    let done = false;
    const load = async () => {
      for (let at = 0; !done; at += 1) lost.push(...((await query(at % 2 ? job : link)).errors ?? []));
    };
    const loads = [load(), load(), load(), load()];
    try {
      await until(() => clients.length > 0);
      const chain = readFileSync(inUse.certFile, 'latin1');
      writeFileSync(inUse.certFile, chain + chain.slice(0, chain.length / 2)); // its second certificate is cut off
      const problem = 'UPSTREAM_CERT_FILE does not hold a certificate in PEM';
      await until(() => output().includes(problem));
      expect(new Set(clients)).toEqual(new Set(['CN=first']));
      expect(await daysLeft()).toBeCloseTo(1, 1);
      install(second);
      await until(() => clients.includes('CN=second'));
      await until(() => !openClients().includes('CN=first'));
      const before = clients.lastIndexOf('CN=first');
      await sleep(1500);
      expect(clients.lastIndexOf('CN=first')).toBe(before);
      expect(await daysLeft()).toBeCloseTo(2, 1);
    } finally {
      done = true;
      await Promise.all(loads);
    }
    expect(lost).toEqual([]);
    expect(logs.filter((line) => line.includes('a changed file cannot be used')).length).toBeLessThanOrEqual(2);
  });
});

describe('the other parties, in a process that NODE_EXTRA_CA_CERTS gives a private authority', () => {
  /** An issuer with its metadata, a decision point, Redis and a collector, all with certificates of the authority. */
  async function startOthers() {
    const [metadata, decisions] = [await startIssuerMetadata(), await startTestDecisionPoint()];
    const [redis, collector] = [await startRedis(), await startCollector()];
    const { url: issuer } = await startTlsFront(metadata.origin, server);
    const provider = await startIdentityProvider({ issuer });
    const { url: jwks_uri } = await startTlsFront(provider.jwksUrl, server);
    metadata.documents.set('/.well-known/openid-configuration', { issuer, jwks_uri });
    const env = {
      ...{ AUTH_MODE: 'jwt', AUTH_ISSUER: issuer, AUTH_AUDIENCE: provider.audience },
      AUTH_DECISION_URL: (await startTlsFront(decisions.url, server)).url,
      CACHE_URL: (await startTlsFront(redis.url, server)).url.replace('https:', 'rediss:'),
      OTEL_EXPORTER_OTLP_ENDPOINT: (await startTlsFront(collector.url, server)).url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    return { env: { ...environmentFor(service), ...env }, metadata, provider, decisions, redis, collector };
  }

  test('are not asked in the clear for a key set that metadata with https names', async () => {
    const { env, metadata, provider } = await startOthers();
    const { AUTH_ISSUER: issuer } = env;
    metadata.documents.set('/.well-known/openid-configuration', { issuer, jwks_uri: provider.jwksUrl });
    const { stdout } = await runCommand({ ...env, AUTH_DECISION_URL: '', NODE_EXTRA_CA_CERTS: authority.certFile }, [
      'check',
    ]);
    expect(stdout).toContain('jwks_uri is not https:, the issuer is');
  });

  const id = demoData.taxpayerIds.authorized;
  const record = `{ taxpayerToken(taxpayerId: "${id}") { status } }`;

  test('are trusted', async () => {
    const { env, provider, decisions, redis, collector } = await startOthers();
    decisions.allow('ada', [id]);
    const { origin } = await spawnGateway({ ...env, NODE_EXTRA_CA_CERTS: authority.certFile });
    const authorization = `Bearer ${await provider.token({ scope: 'taxpayers:read' })}`;
    const { status, data, errors } = await postQuery(origin, record, {}, { authorization });
    expect({ status, data, errors }).toMatchObject({ status: 200, data: { taxpayerToken: { status: 'AUTHORIZED' } } });
    expect(decisions.asked).toHaveLength(1);
    expect(await redis.keys()).not.toEqual([]);
    await until(() => collector.spans.length > 0);
  });

  test('are not trusted with another authority', async () => {
    const { env, provider, redis } = await startOthers();
    const { origin, output } = await spawnGateway({ ...env, NODE_EXTRA_CA_CERTS: other.certFile });
    const authorization = `Bearer ${await provider.token({ scope: 'taxpayers:read taxpayers:any' })}`;
    expect(codesOf(await postQuery(origin, record, {}, { authorization }))).toEqual(['AUTH_UNAVAILABLE']);
    await until(() => /a key set cannot be read/.test(output()));
    expect(output()).toMatch(/store unavailable/);
    expect(output()).toMatch(untrusted);
    expect(await redis.keys()).toEqual([]);
  });
});

const weak = { certFile: file('weak.crt'), keyFile: file('weak.key') };
issueCertificate('weak', weak, ['-newkey', 'rsa:512', '-nodes']);
const foreignKey = 'UPSTREAM_KEY_FILE does not hold the private key of the first certificate in UPSTREAM_CERT_FILE';

test.each([
  ['a key of the same type that does not belong to its certificate', server.certFile, other.keyFile, foreignKey],
  ['a key of another type', server.certFile, weak.keyFile, foreignKey],
  ['a file without a key', server.certFile, server.certFile, 'UPSTREAM_KEY_FILE does not hold a private key'],
  ['a key that is too short', weak.certFile, weak.keyFile, 'UPSTREAM_CERT_FILE is refused by OpenSSL'],
])('%s ends the start with one line', async (_, UPSTREAM_CERT_FILE, UPSTREAM_KEY_FILE, line) => {
  const config = loadConfig({ ...environmentFor(service), UPSTREAM_CERT_FILE, UPSTREAM_KEY_FILE });
  await expect(startGateway(config, { write: () => {} })).rejects.toThrow(line);
});
