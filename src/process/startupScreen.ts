import type { Config } from '../config/config.js';
import type { Logger } from '../observability/log.js';
import type { StandardOutput } from '../observability/StandardOutput.js';
import type { DemoData } from '../sandbox/demoData.js';

/** What a started gateway can tell about itself. */
export interface GatewayFacts {
  readonly port: number;
  readonly firstQuery: string;
  /** The embedded sandbox, when it is the service. */
  readonly sandbox?: { readonly url: string; readonly demo: DemoData } | undefined;
}

/** Tells where everything is: a readable screen in a terminal, one JSON line anywhere else. */
export function announce(
  { port, firstQuery, sandbox }: GatewayFacts,
  config: Config,
  log: Logger,
  output: StandardOutput,
): void {
  const { upstream } = config;
  const origin = originOf(config, port);
  const places = {
    graphql: `${origin}/graphql`,
    ...(config.introspection && { apolloSandbox: `${origin}/`, graphiql: `${origin}/graphiql` }),
    health: `${origin}/health/ready`,
    metrics: config.metricsPort === undefined ? `${origin}/metrics` : `port ${config.metricsPort}`,
    service: upstream === 'embedded-sandbox' ? `embedded sandbox at ${sandbox?.url}` : upstream.baseUrl,
  };
  const demo = sandbox && { taxpayerIds: sandbox.demo.taxpayerIds, jobs: sandbox.demo.jobs };
  for (const warning of config.warnings) log.warn(warning);
  if (output.isTerminal) output.write(screen(places, firstQuery, demo?.taxpayerIds));
  else log.info({ ...places, firstQuery, ...(demo && { demo }) }, 'ready');
}

function originOf(config: Config, port: number): string {
  const everywhere = ['127.0.0.1', '::1', '0.0.0.0', '::'].includes(config.host);
  const host = everywhere ? 'localhost' : config.host.includes(':') ? `[${config.host}]` : config.host;
  return `${config.tls ? 'https' : 'http'}://${host}:${port}`;
}

type Table = Readonly<Record<string, string>>;

function screen(places: Table, firstQuery: string, taxpayerIds: Table | undefined): string {
  const section = (title: string, lines: readonly string[]) => ['', title, '', ...lines.map((line) => `  ${line}`)];
  const rows = (table: Table) => Object.entries(table).map(([name, value]) => `${name.padEnd(28)}${value}`);
  return [
    ...section('Taxpayer gateway: ready', rows(places)),
    ...(taxpayerIds ? section('Demo taxpayers', rows(taxpayerIds)) : []),
    ...section('First query', firstQuery.split('\n')),
    ...['', 'Ctrl-C ends it.', '', ''],
  ].join('\n');
}
