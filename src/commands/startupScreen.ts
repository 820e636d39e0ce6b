import { type Config, packageVersion } from '../config/config.js';
import type { StandardOutput } from '../observability/StandardOutput.js';
import type { DemoData } from '../sandbox/demoData.js';
import type { Gateway } from '../server.js';
import { shownStore } from '../stores/openStore.js';

/** Tells where everything is: a readable screen in a terminal, one JSON line anywhere else. */
export function announce({ port, firstQuery, sandbox, log }: Gateway, config: Config, output: StandardOutput): void {
  const { upstream, auth } = config;
  const origin = originOf(config, port);
  const places = {
    graphql: `${origin}/graphql`,
    ...(config.introspection && { apolloSandbox: `${origin}/`, graphiql: `${origin}/graphiql` }),
    health: `${origin}/health/ready`,
    metrics: config.metricsPort === undefined ? `${origin}/metrics` : `port ${config.metricsPort}`,
    service: upstream === 'embedded-sandbox' ? `embedded sandbox at ${sandbox?.url}` : upstream.baseUrl,
    store: shownStore(config.cache.url),
    callers: auth.mode === 'jwt' ? auth.issuers.map(({ issuer }) => issuer).join(', ') : `AUTH_MODE=${auth.mode}`,
    version: `${packageVersion()} on Node.js ${process.versions.node}`,
  };
  const demo = sandbox?.demo;
  for (const warning of config.warnings) log.warn(warning);
  if (output.isTerminal) output.write(screen(places, firstQuery, demo));
  else log.info({ ...places, ...(demo && { firstQuery, demo }) }, 'ready');
}

function originOf(config: Config, port: number): string {
  const everywhere = ['127.0.0.1', '::1', '0.0.0.0', '::'].includes(config.host);
  const host = everywhere ? 'localhost' : config.host.includes(':') ? `[${config.host}]` : config.host;
  return `${config.tls ? 'https' : 'http'}://${host}:${port}`;
}

function screen(places: object, firstQuery: string, demo: DemoData | undefined): string {
  const section = (title: string, lines: readonly string[]) => ['', title, '', ...lines.map((line) => `  ${line}`)];
  const row = ([name, value]: readonly [string, string]) => `${name.padEnd(28)}${value}`;
  const jobs = Object.entries(demo?.jobs ?? {}).map(([name, { jobId }]) => row([name, jobId]));
  return [
    ...section('Taxpayer gateway: ready', Object.entries(places).map(row)),
    ...(demo ? section('Demo taxpayers', Object.entries(demo.taxpayerIds).map(row)) : []),
    ...(demo ? section('Demo jobs of "authorized"; the last is completed 15 s after it is first read', jobs) : []),
    ...section('First query', firstQuery.split('\n')),
    ...['', 'Ctrl-C ends it.', '', ''],
  ].join('\n');
}
