import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../../src/config/config.js';
import { settings } from '../../../src/config/settings.js';
import { issueCertificate } from '../../support/certificate.js';
import { startTestGateway } from '../../support/gateway.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const knownSettings = new Set(
  Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name])),
);
const instructions = read('Dockerfile')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const scratch: string[] = [];
afterAll(() => {
  for (const folder of scratch) rmSync(folder, { recursive: true, force: true });
});

describe('The Dockerfile', () => {
  const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')));

  it('pins its base, runs as a user, has a health check, and lets Node.js be process 1', () => {
    const bases = instructions.filter((line) => line.startsWith('FROM '));
    for (const base of bases) expect(base).toMatch(/^FROM node:\d+\.\d+\.\d+-[\w-]+( AS \w+)?$/);
    expect(last.filter((line) => line.startsWith('USER '))).toEqual(['USER node']);
    expect(last.find((line) => line.startsWith('HEALTHCHECK '))).toContain('/health/ready');
    expect(last.at(-1)).toBe('CMD ["node", "/app/dist/main.js"]');
    expect(instructions.filter((line) => /^ADD |curl |sudo |:latest/.test(line))).toEqual([]);
    expect(last.findIndex((line) => line.startsWith('USER '))).toBeGreaterThan(
      last.findLastIndex((line) => line.startsWith('RUN ')),
    );
  });

  it('knows the settings it sets, and keeps secrets out of its layers', () => {
    const names = instructions.flatMap((line) =>
      [...line.matchAll(/^(?:ENV|ARG) (\w+)/g)].map(([, name = '']) => name),
    );
    for (const name of names) expect(knownSettings).toContain(name);
    expect(names.filter((name) => /SECRET|KEY/.test(name))).toEqual([]);
  });

  it('builds from nothing but what it copies', () => {
    const folder = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-image-'));
    scratch.push(folder);
    const first = instructions.slice(
      0,
      instructions.findLastIndex((line) => line.startsWith('FROM ')),
    );
    for (const line of first) {
      const [verb, ...words] = line.split(/\s+/);
      if (verb === 'COPY') for (const source of words.slice(0, -1)) copyInto(folder, source);
      // `npm ci` is what this test runs from; it and the pruning would take minutes and the same packages again.
      if (line.startsWith('RUN npm ci')) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
      else if (line.startsWith('RUN ') && !line.includes('npm prune')) {
        const { status, stderr } = spawnSync('sh', ['-c', words.join(' ')], { cwd: folder, encoding: 'utf8' });
        expect({ line, status, stderr }).toMatchObject({ status: 0 });
      }
    }
    const { stdout } = spawnSync(process.execPath, ['dist/main.js', '--version'], { cwd: folder, encoding: 'utf8' });
    expect(stdout).toBe(`${JSON.parse(read('package.json')).version}\n`);
  }, 120_000);

  it.each(['plain HTTP', 'HTTPS'])('finds a gateway healthy over %s, and one that is not there not', async (form) => {
    const folder = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-health-'));
    scratch.push(folder);
    const tls = { TLS_CERT_FILE: join(folder, 'tls.crt'), TLS_KEY_FILE: join(folder, 'tls.key') };
    issueCertificate('localhost', { certFile: tls.TLS_CERT_FILE, keyFile: tls.TLS_KEY_FILE });
    const env = form === 'HTTPS' ? tls : {};
    const [, command = '[]'] = / CMD (\[.*\])$/.exec(last.find((line) => line.startsWith('HEALTHCHECK ')) ?? '') ?? [];
    const [, ...args] = JSON.parse(command) as string[];
    const gateway = await startTestGateway(env);
    const check = async () => {
      const child = spawn(process.execPath, args, { env: { ...env, PORT: String(gateway.gateway.port) } });
      return (await once(child, 'exit'))[0];
    };
    expect(await check()).toBe(0);
    await gateway.stop();
    expect(await check()).toBe(1);
  });

  it('ignores nothing it copies', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const copied = instructions
      .filter((line) => /^COPY (?!--from)/.test(line))
      .flatMap((line) => line.split(/\s+/).slice(1, -1));
    expect(copied.filter((path) => ignored.includes(path))).toEqual([]);
    for (const secret of ['.env*', '.git', '.taxpayer-gateway']) expect(ignored).toContain(secret);
  });
});

describe('compose.yaml', () => {
  const { services } = parse(read('compose.yaml')) as {
    services: Record<string, { environment?: Record<string, string>; volumes?: string[]; depends_on?: object }>;
  };

  it('sets settings that exist and mounts files that exist', () => {
    for (const name of Object.keys(services['gateway']?.environment ?? {})) expect(knownSettings).toContain(name);
    for (const { volumes = [], depends_on = {} } of Object.values(services)) {
      for (const volume of volumes) expect(existsSync(join(root, volume.split(':')[0] ?? ''))).toBe(true);
      for (const name of Object.keys(depends_on)) expect(Object.keys(services)).toContain(name);
    }
  });

  it('has Prometheus scrape the gateway where it serves metrics', () => {
    const port = services['gateway']?.environment?.['METRICS_PORT'];
    expect(JSON.stringify(parse(read('ops/prometheus/prometheus.yml')))).toContain(`"gateway:${port}"`);
  });
});

describe('The Kubernetes manifests', () => {
  const manifests = readdirSync(join(root, 'ops/kubernetes')).flatMap((file) =>
    parseAllDocuments(read(`ops/kubernetes/${file}`)).map((document) => document.toJS() as { kind: string }),
  );
  const find = (kind: string) => manifests.find((manifest) => manifest.kind === kind) as never;
  const exampleSecret = parse(read('ops/secret.example.yaml')) as {
    kind: 'Secret';
    metadata: { name: string };
    stringData: Record<string, string>;
  };

  it('bring no Secret of their own, which would replace the real one', () => {
    expect(manifests.map(({ kind }) => kind)).not.toContain('Secret');
    const { volumes } = podOf(find);
    expect(volumes.map(({ secret }) => secret.secretName)).toEqual([exampleSecret.metadata.name]);
  });

  it('name settings and secrets that exist, and give the drain the time it takes', () => {
    const spec = podOf(find);
    const env = spec.containers[0]?.env ?? [];
    for (const { name } of env) expect(knownSettings).toContain(name);
    const keys = Object.keys(exampleSecret.stringData);
    const files = env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => value.split('/').at(-1));
    expect(files.sort()).toEqual(keys.sort());
    const drainMs = Number(env.find(({ name }) => name === 'DRAIN_TIMEOUT_MS')?.value);
    expect(spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(drainMs + 5000);
  });

  it('start the image: what both set is accepted, but for the printed key and secret, which are refused by name', () => {
    const folder = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-secrets-'));
    scratch.push(folder);
    const inImage = instructions.flatMap((line) =>
      [...line.matchAll(/^ENV (\w+)=(\S+)$/g)].map(([, name, value]) => [name, value]),
    );
    const write = (secret: Readonly<Record<string, string>>) => {
      for (const [name, text] of Object.entries(secret)) writeFileSync(join(folder, name), text);
    };
    const inPod = podOf(find).containers[0]?.env.map(({ name, value }) => [
      name,
      name.endsWith('_FILE') ? join(folder, value.split('/').at(-1) ?? '') : value,
    ]);
    const env = Object.fromEntries([...inImage, ...(inPod ?? [])]);
    write(exampleSecret.stringData);
    expect(() => loadConfig(env)).toThrow(
      /^UPSTREAM_CLIENT_SECRET is the example .*\nCACHE_ENCRYPTION_KEY is the example .*$/,
    );
    write({ 'client-secret': 'our-own', 'cache-encryption-key': Buffer.alloc(32, 7).toString('base64') });
    const config = loadConfig(env);
    expect(config.cache.url).toMatch(/^rediss?:/);
    expect(config.introspection).toBe(false);
  });

  it('let in where the pods listen and out to what the settings name, and nothing else', () => {
    const [{ env, ports } = { env: [], ports: [] }] = podOf(find).containers;
    const { ingress, egress } = (find('NetworkPolicy') as NetworkPolicy).spec;
    const portsOf = (rules: NetworkPolicy['spec']['ingress']) =>
      rules.flatMap((rule) => rule.ports.map(({ port }) => port));
    expect(portsOf(ingress)).toEqual(ports.map(({ name }) => name));
    const urls = [...env.map(({ value }) => value), ...Object.values(exampleSecret.stringData)].filter((text) =>
      URL.canParse(text),
    );
    const wellKnown: Readonly<Record<string, number>> = { 'https:': 443, 'redis:': 6379 };
    const named = urls.map((url) => Number(new URL(url).port) || wellKnown[new URL(url).protocol]);
    expect(new Set(portsOf(egress))).toEqual(new Set([53, ...named]));
  });

  it('have Prometheus scrape where metrics are, as the job that the alerts ask for', () => {
    const [{ env, ports } = { env: [], ports: [] }] = podOf(find).containers;
    const { spec } = find('PodMonitor') as { spec: { jobLabel: string; podMetricsEndpoints: { port: string }[] } };
    const scraped = ports.find(({ name }) => name === spec.podMetricsEndpoints[0]?.port);
    expect(String(scraped?.containerPort)).toBe(env.find(({ name }) => name === 'METRICS_PORT')?.value);
    const { labels } = (find('Deployment') as { spec: { template: { metadata: { labels: Record<string, string> } } } })
      .spec.template.metadata;
    expect(read('ops/alerts.yml')).toContain(`up{job="${labels[spec.jobLabel]}"}`);
  });

  it('select each other', () => {
    const deployment = find('Deployment') as {
      metadata: { name: string };
      spec: { template: { metadata: { labels: object } } };
    };
    const labels = deployment.spec.template.metadata.labels;
    expect((find('Service') as { spec: { selector: object } }).spec.selector).toEqual(labels);
    expect(
      (find('PodDisruptionBudget') as { spec: { selector: { matchLabels: object } } }).spec.selector.matchLabels,
    ).toEqual(labels);
    for (const { labelSelector } of podOf(find).topologySpreadConstraints) {
      expect(labelSelector.matchLabels).toEqual(labels);
    }
    const policy = find('NetworkPolicy') as { spec: { podSelector: { matchLabels: object } } };
    expect(policy.spec.podSelector.matchLabels).toEqual(labels);
    const monitor = find('PodMonitor') as { spec: { selector: { matchLabels: object }; jobLabel: string } };
    expect(monitor.spec.selector.matchLabels).toEqual(labels);
    const scaled = find('HorizontalPodAutoscaler') as { spec: { scaleTargetRef: { name: string } } };
    expect(scaled.spec.scaleTargetRef.name).toBe(deployment.metadata.name);
  });
});

interface Pod {
  readonly volumes: { readonly secret: { readonly secretName: string } }[];
  readonly terminationGracePeriodSeconds: number;
  readonly topologySpreadConstraints: { readonly labelSelector: { readonly matchLabels: object } }[];
  readonly containers: {
    readonly env: { readonly name: string; readonly value: string }[];
    readonly ports: { readonly name: string; readonly containerPort: number }[];
  }[];
}

interface NetworkPolicy {
  readonly spec: Readonly<Record<'ingress' | 'egress', { readonly ports: { readonly port: number | string }[] }[]>>;
}

const podOf = (find: (kind: string) => never) =>
  (find('Deployment') as { spec: { template: { spec: Pod } } }).spec.template.spec;

function copyInto(folder: string, source: string): void {
  if (existsSync(join(root, source)) && !source.includes('.'))
    cpSync(join(root, source), join(folder, source), { recursive: true });
  else {
    mkdirSync(dirname(join(folder, source)), { recursive: true });
    copyFileSync(join(root, source), join(folder, source));
  }
}
