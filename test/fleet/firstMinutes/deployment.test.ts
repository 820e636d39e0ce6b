import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
});

describe.each(['compose.yaml', 'compose.demo.yaml'])('%s', (file) => {
  const { services } = parse(read(file)) as { services: Record<string, Service> };
  const { version } = JSON.parse(read('package.json')) as { version: string };

  it('sets settings that exist, runs the image of this version, and mounts files that exist', () => {
    for (const name of Object.keys(services['gateway']?.environment ?? {})) {
      expect([...knownSettings, 'NODE_ENV']).toContain(name);
    }
    for (const { image, build, volumes = [], depends_on = {} } of Object.values(services)) {
      if (build) expect(image).toBe(`taxpayer-gateway:${version}`);
      for (const volume of volumes) expect(existsSync(join(root, volume.split(':')[0] ?? ''))).toBe(true);
      for (const name of Object.keys(depends_on)) expect(Object.keys(services)).toContain(name);
    }
  });

  if (file === 'compose.yaml') {
    it('has Prometheus scrape the gateway where it serves metrics', () => {
      const port = services['gateway']?.environment?.['METRICS_PORT'];
      expect(JSON.stringify(parse(read('ops/prometheus/prometheus.yml')))).toContain(`"gateway:${port}"`);
    });
    return;
  }

  it('needs no file, and is reached from this machine alone', () => {
    const published = Object.values(services).flatMap(({ ports = [] }) => ports);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    expect(Object.values(services).filter((each) => 'env_file' in each)).toEqual([]);
  });
});

describe.each(['development', 'production'])('The Kubernetes overlay %s', (environment) => {
  const { manifests, settings: configured, secret: own, images } = rendered(`ops/kubernetes/overlays/${environment}`);
  const example = parse(read('ops/secret.example.yaml')) as { metadata: { name: string }; stringData: Settings };
  const secret = own ?? example.stringData;
  const find = (kind: string, name = 'taxpayer-gateway') =>
    manifests.find((each) => each.kind === kind && each.metadata.name === name) as never;
  const deployment = find('Deployment') as Deployment;
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;

  it('runs the image of this version, in as many pods as the autoscaler says', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(images.map(({ newTag }) => newTag)).toEqual([version]);
    expect(deployment.spec).not.toHaveProperty('replicas');
  });

  it('names settings and secrets that exist, and gives the drain the time it takes', () => {
    for (const name of Object.keys(configured)) expect([...knownSettings, 'NODE_ENV']).toContain(name);
    const files = Object.entries(configured).filter(([name]) => name.endsWith('_FILE'));
    expect(files.map(([, path]) => path.split('/').at(-1)).sort()).toEqual(Object.keys(secret).sort());
    const pauseSeconds = Number(container?.lifecycle.preStop.exec.command[1]);
    const drainSeconds = Number(configured['DRAIN_TIMEOUT_MS']) / 1000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drainSeconds + pauseSeconds);
  });

  it('starts the image; the printed secrets are refused by name in production', () => {
    const folder = mkdtempSync(join(tmpdir(), 'taxpayer-gateway-secrets-'));
    scratch.push(folder);
    const inImage = instructions.flatMap((line) =>
      [...line.matchAll(/^ENV (\w+)=(\S+)$/g)].map(([, name, value]) => [name, value]),
    );
    const inPod = Object.entries(configured).map(([name, value]) => [
      name,
      name.endsWith('_FILE') ? join(folder, value.split('/').at(-1) ?? '') : value,
    ]);
    const env = Object.fromEntries([...inImage, ...inPod, ['HOST', '0.0.0.0']]);
    const write = (texts: Settings) => {
      for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
    };
    write(secret);
    if (environment === 'production') {
      const refused = ['UPSTREAM_CLIENT_SECRET', 'CACHE_ENCRYPTION_KEY', 'FEDERATION_SHARED_SECRET'];
      expect(() => loadConfig(env)).toThrow(
        new RegExp(`^${refused.map((name) => `${name} is the example .*`).join('\\n')}$`),
      );
      const key = Buffer.alloc(32, 7).toString('base64');
      write({ 'client-secret': 'our-own', 'cache-encryption-key': key, 'router-secret': 'our-own-of-the-router' });
    }
    const config = loadConfig(env);
    expect(config.cache.url).toMatch(/^rediss?:/);
    expect(config.introspection).toBe(environment === 'development');
  });

  it('lets in where the pods listen and out to what the settings name, and nothing else', () => {
    const portsOf = (rules: readonly Rule[] = []) => rules.flatMap(({ ports }) => ports.map(({ port }) => port));
    const policies = ['taxpayer-gateway', 'taxpayer-gateway-egress'].map(
      (name) => find('NetworkPolicy', name) as Policy,
    );
    for (const { spec } of policies) expect(spec.podSelector.matchLabels).toEqual(deployment.spec.selector.matchLabels);
    expect(portsOf(policies.flatMap(({ spec }) => spec.ingress ?? []))).toEqual(
      container?.ports.map(({ name }) => name),
    );
    const wellKnown: Readonly<Record<string, number>> = { 'https:': 443, 'redis:': 6379, 'rediss:': 6379 };
    const named = Object.entries({ ...configured, ...secret })
      .filter(([name, text]) => URL.canParse(text) && name !== 'CORS_ORIGINS')
      .map(([, text]) => new URL(text))
      .map(({ port, protocol }) => Number(port) || wellKnown[protocol]);
    expect(new Set(portsOf(policies.flatMap(({ spec }) => spec.egress ?? [])))).toEqual(new Set([53, ...named]));
  });
});

type Settings = Readonly<Record<string, string>>;

interface Service {
  readonly build?: string;
  readonly image?: string;
  readonly environment?: Settings;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: object;
}

interface Rule {
  readonly ports: readonly { readonly port: number | string }[];
}

interface Policy {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: object };
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}

interface Deployment {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly spec: Pod };
  };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly {
    readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  }[];
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly images?: readonly { readonly newTag: string }[];
  readonly configMapGenerator?: readonly { readonly literals: readonly string[] }[];
  readonly secretGenerator?: readonly { readonly literals: readonly string[] }[];
}

/** What `kubectl kustomize` makes of a folder, as far as ours go: resources, literals that add up, images. */
function rendered(folder: string): {
  manifests: { apiVersion: string; kind: string; metadata: { name: string } }[];
  settings: Settings;
  secret?: Settings | undefined;
  images: readonly { readonly newTag: string }[];
} {
  const { resources, images = [], ...own } = parse(read(`${folder}/kustomization.yaml`)) as Kustomization;
  const pairs = (generators: Kustomization['secretGenerator'] = []) =>
    Object.fromEntries(generators.flatMap(({ literals }) => literals.map((each) => each.split(/=(.*)/s).slice(0, 2))));
  const files = resources.filter((name) => name.endsWith('.yaml'));
  const bases = resources.filter((name) => !name.endsWith('.yaml')).map((name) => rendered(join(folder, name)));
  return {
    manifests: [
      ...bases.flatMap(({ manifests }) => manifests),
      ...files.flatMap((file) => parseAllDocuments(read(`${folder}/${file}`)).map((document) => document.toJS())),
    ],
    settings: Object.assign({}, ...bases.map(({ settings }) => settings), pairs(own.configMapGenerator)),
    secret: own.secretGenerator && pairs(own.secretGenerator),
    images,
  };
}
