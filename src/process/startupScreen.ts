import type { Config } from '../config/config.js';
import type { Logger } from '../observability/log.js';
import type { StandardOutput } from '../observability/StandardOutput.js';
import type { DemoData } from '../sandbox/demoData.js';

/** What a started gateway can tell about itself; plain data, so that a worker can send it to the primary process. */
export interface GatewayFacts {
  readonly port: number;
  readonly firstQuery: string;
  /** Present when the embedded sandbox is the service. */
  readonly sandbox: { readonly url: string; readonly demo: DemoData } | undefined;
}

/** Tells where everything is: a readable screen in a terminal, one JSON line anywhere else. */
export function announce(facts: GatewayFacts, config: Config, log: Logger, output: StandardOutput): void {
  const origin = originOf(config, facts.port);
  const places = {
    graphql: `${origin}/graphql`,
    ...(config.introspection && { apolloSandbox: `${origin}/`, graphiql: `${origin}/graphiql` }),
    health: `${origin}/health/ready`,
    metrics: config.metricsPort === undefined ? `${origin}/metrics` : `port ${config.metricsPort}`,
    service: facts.sandbox ? `embedded sandbox at ${facts.sandbox.url}` : baseUrlOf(config),
  };
  const demo = facts.sandbox && { taxpayerIds: facts.sandbox.demo.taxpayerIds, jobs: facts.sandbox.demo.jobs };
  for (const warning of config.warnings) log.warn(warning);
  if (output.isTerminal) output.write(screen(places, facts, demo));
  else log.info({ ...places, firstQuery: facts.firstQuery, ...(demo && { demo }) }, 'ready');
}

function baseUrlOf({ upstream }: Config): string {
  return upstream === 'embedded-sandbox' ? upstream : upstream.baseUrl;
}

function originOf(config: Config, port: number): string {
  const everywhere = ['127.0.0.1', '::1', '0.0.0.0', '::'].includes(config.host);
  const host = everywhere ? 'localhost' : config.host.includes(':') ? `[${config.host}]` : config.host;
  return `${config.tls ? 'https' : 'http'}://${host}:${port}`;
}

type Table = Readonly<Record<string, string>>;

function screen(
  places: Table,
  { firstQuery }: GatewayFacts,
  demo: { readonly taxpayerIds: Table } | undefined,
): string {
  const section = (title: string, lines: readonly string[]) => ['', title, '', ...lines.map((line) => `  ${line}`)];
  const rows = (table: Table) => Object.entries(table).map(([name, value]) => `${name.padEnd(28)}${value}`);
  return [
    ...section('Taxpayer gateway: ready', rows(places)),
    ...(demo ? section('Demo taxpayers', rows(demo.taxpayerIds)) : []),
    ...section('First query', firstQuery.split('\n')),
    ...['', 'Ctrl-C ends it.', '', ''],
  ].join('\n');
}
