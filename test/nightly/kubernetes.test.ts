import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/config/config.js';
import type { Texts } from '../support/gateway.js';
import { needPrograms } from '../support/programs.js';
import { read } from '../support/repository.js';
import { scratch } from '../support/scratch.js';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** What kubectl makes of an overlay. */
function rendered(environment: string): Manifest[] {
  needPrograms(['kubectl']);
  const folder = join('ops/kubernetes/overlays', environment);
  const text = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

describe.each(['development', 'production'])('The overlay %s', (environment) => {
  const objects = rendered(environment);
  const find = <T>(kind: string, name = 'taxpayer-gateway') =>
    objects.find((each) => each.kind === kind && each.metadata.name.startsWith(name)) as T;
  const { spec } = find<Deployment>('Deployment');
  const [container] = spec.template.spec.containers as [Container];
  const settings = find<{ readonly data: Texts }>('ConfigMap').data;
  const example = parse(read('ops/secret.example.yaml')) as { readonly stringData: Texts };
  const own = find<{ readonly data: Texts } | undefined>('Secret');
  const decoded = (text: string) => Buffer.from(text, 'base64').toString();
  const secret = own
    ? Object.fromEntries(Object.entries(own.data).map(([name, text]) => [name, decoded(text)]))
    : example.stringData;

  it('names secrets that exist, gives the drain the time it takes, and leaves the replicas to the autoscaler', () => {
    expect(spec).not.toHaveProperty('replicas');
    const files = Object.entries(settings).filter(([name]) => name.endsWith('_FILE'));
    expect(files.map(([, path]) => path.split('/').at(-1)).sort()).toEqual(Object.keys(secret).sort());
    const pauseSeconds = Number(container.lifecycle.preStop.exec.command[1]);
    const drainSeconds = Number(settings['DRAIN_TIMEOUT_MS']) / 1000;
    expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainSeconds + pauseSeconds);
  });

  it('starts the gateway; the printed secrets are refused by name in production', () => {
    const folder = scratch();
    const inPod = Object.entries(settings).map(([name, value]) => [
      name,
      name.endsWith('_FILE') ? join(folder, value.split('/').at(-1) ?? '') : value,
    ]);
    const inImage = [...read('Dockerfile').matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name, value]) => [name, value]);
    const env = Object.fromEntries([...inImage, ...inPod, ['HOST', '0.0.0.0']]);
    const write = (texts: Texts) => {
      for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
    };
    write(secret);
    if (environment === 'production') {
      const refused = ['UPSTREAM_CLIENT_SECRET', 'CACHE_ENCRYPTION_KEY', 'FEDERATION_SHARED_SECRET'];
      const lines = refused.map((name) => `${name} is the example .*`).join('\\n');
      expect(() => loadConfig(env)).toThrow(new RegExp(`^${lines}$`));
      const key = Buffer.alloc(32, 7).toString('base64');
      write({ 'client-secret': 'our-own', 'cache-encryption-key': key, 'router-secret': 'our-own-of-the-router' });
    }
    const config = loadConfig(env);
    expect(config.warnings.filter((line) => line.includes('is not a setting'))).toEqual([]);
    expect(config.CACHE_URL).toMatch(/^rediss?:/);
    expect(config.INTROSPECTION).toBe(environment === 'development');
  });

  it('lets in where the pods listen and out to what the settings name, and nothing else', () => {
    const portsOf = (rules: readonly Rule[] = []) => rules.flatMap(({ ports }) => ports.map(({ port }) => port));
    const policies = ['taxpayer-gateway', 'taxpayer-gateway-egress'].map(
      (name) => objects.find((each) => each.kind === 'NetworkPolicy' && each.metadata.name === name) as never as Policy,
    );
    for (const policy of policies) expect(policy.spec.podSelector.matchLabels).toEqual(spec.selector.matchLabels);
    const listening = container.ports.map(({ name }) => name);
    expect(portsOf(policies.flatMap((policy) => policy.spec.ingress ?? []))).toEqual(listening);
    const wellKnown: Readonly<Record<string, number>> = { 'https:': 443, 'redis:': 6379, 'rediss:': 6379 };
    const named = Object.entries({ ...settings, ...secret })
      .filter(([name, text]) => URL.canParse(text) && name !== 'CORS_ORIGINS')
      .map(([, text]) => new URL(text))
      .map(({ port, protocol }) => Number(port) || wellKnown[protocol]);
    expect(new Set(portsOf(policies.flatMap((policy) => policy.spec.egress ?? [])))).toEqual(new Set([53, ...named]));
  });
});

interface Container {
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly ports: readonly { readonly name: string }[];
}

interface Deployment {
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: {
      readonly spec: { readonly terminationGracePeriodSeconds: number; readonly containers: readonly Container[] };
    };
  };
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
