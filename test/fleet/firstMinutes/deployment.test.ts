import { existsSync } from 'node:fs';
import { parse } from 'yaml';
import { settings } from '../../../src/config/settings.js';
import { makeAuthority } from '../../support/certificate.js';
import { startTestGateway, type Texts } from '../../support/gateway.js';
import { startProgram } from '../../support/program.js';
import { read } from '../../support/repository.js';
import { scratch } from '../../support/scratch.js';

const knownSettings = new Set(
  Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name])),
);
const instructions = read('Dockerfile')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));

describe('The Dockerfile', () => {
  const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')));

  it('pins its base, keeps no dependencies, runs as a numbered user, has a health check, and lets Node.js be process 1', () => {
    const bases = instructions.filter((line) => line.startsWith('FROM '));
    for (const base of bases) expect(base).toMatch(/^FROM node:\d+\.\d+\.\d+-[\w-]+( AS \w+)?$/);
    expect(last.filter((line) => line.startsWith('USER '))).toEqual(['USER 1000']);
    expect(last.find((line) => line.startsWith('HEALTHCHECK '))).toContain('/health/ready');
    expect(last.at(-1)).toBe('CMD ["node", "/app/dist/main.js"]');
    expect(instructions.filter((line) => /^ADD |curl |sudo |:latest|node_modules/.test(line))).toEqual([]);
    expect(last.findIndex((line) => line.startsWith('USER '))).toBeGreaterThan(
      last.findLastIndex((line) => line.startsWith('RUN ')),
    );
  });

  it.each(['plain HTTP', 'HTTPS'])('finds a gateway healthy over %s, and one that is not there not', async (form) => {
    const { certFile: TLS_CERT_FILE, keyFile: TLS_KEY_FILE } = makeAuthority(scratch(), 'localhost');
    const env = form === 'HTTPS' ? { TLS_CERT_FILE, TLS_KEY_FILE } : {};
    const [, command = '[]'] = / CMD (\[.*\])$/.exec(last.find((line) => line.startsWith('HEALTHCHECK ')) ?? '') ?? [];
    const [, ...args] = JSON.parse(command) as string[];
    const gateway = await startTestGateway(env);
    const check = () =>
      startProgram(process.execPath, args, { env: { ...env, PORT: String(gateway.gateway.port) } }).exited;
    expect(await check()).toBe(0);
    await gateway.stop();
    expect(await check()).toBe(1);
  });
});

const servicesOf = (file: string) => (parse(read(file)) as { services: Record<string, Service> }).services;

it.each(['compose.yaml', 'compose.demo.yaml'])('%s sets settings and mounts files that exist', (file) => {
  const services = servicesOf(file);
  for (const name of Object.keys(services['gateway']?.environment ?? {})) {
    expect([...knownSettings, 'NODE_ENV']).toContain(name);
  }
  for (const { volumes = [], depends_on = {} } of Object.values(services)) {
    for (const volume of volumes) expect(existsSync(volume.split(':')[0] ?? '')).toBe(true);
    for (const name of Object.keys(depends_on)) expect(Object.keys(services)).toContain(name);
  }
});

describe('compose.yaml', () => {
  const { gateway } = servicesOf('compose.yaml');

  it('has Prometheus scrape the gateway where it serves metrics', () => {
    const port = gateway?.environment?.['METRICS_PORT'];
    expect(JSON.stringify(parse(read('ops/prometheus/prometheus.yml')))).toContain(`"gateway:${port}"`);
  });

  it('publishes the port that the gateway listens on, whatever .env says', () => {
    expect(gateway?.ports).toEqual([`4000:${gateway?.environment?.['PORT']}`]);
  });
});

it('compose.demo.yaml needs no file, and is reached from this machine alone, also by the page of docs/clients.md', () => {
  const services = servicesOf('compose.demo.yaml');
  const [page] = /http:\/\/localhost:\d+(?=> shows)/.exec(read('docs/clients.md')) ?? [];
  expect(services['gateway']?.environment?.['CORS_ORIGINS']?.split(',')).toContain(page);
  const published = Object.values(services).flatMap(({ ports = [] }) => ports);
  for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  expect(Object.values(services).filter((each) => 'env_file' in each)).toEqual([]);
});

interface Service {
  readonly environment?: Texts;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: object;
}
