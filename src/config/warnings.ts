import { closest, distance } from 'fastest-levenshtein';
import { settings } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** For a real service that listens beyond loopback. */
export const explorersAreOpen =
  'NODE_ENV is not production: introspection, the explorers and CORS for Apollo Sandbox are on for everyone who can reach HOST. Set NODE_ENV=production, or INTROSPECTION if this is meant';

/** What looks like a typing mistake: worth a warning, not a refusal. */
export function warningsOf(env: Environment): string[] {
  return [...unknown(env), ...quoted(env), ...almostProduction(env), ...ofServices(env)];
}

/** A shell removes quotation marks; files of variables such as those of `docker run --env-file` keep them. */
function quoted(env: Environment): string[] {
  const names = Object.keys(settings).filter((name) => /^(["']).*\1$/.test(env[name] ?? ''));
  return names.map((name) => `${name} is in quotation marks, which count as part of it: did you mean that?`);
}

/** Kubernetes sets the variable `<NAME>_PORT` to an address for a Service of that name in the namespace. */
export function isOfService(name: string, text: string | undefined): boolean {
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text ?? '');
}

function ofServices(env: Environment): string[] {
  const names = Object.keys(settings).filter((name) => isOfService(name, env[name]));
  return names.map((name) => {
    const service = name.slice(0, -'_PORT'.length).toLowerCase();
    const why = `Kubernetes sets it to an address for a Service called ${service}`;
    return `${name} is ignored: ${why}; expected a port, or enableServiceLinks: false`;
  });
}

/** Begin like a setting, but are of Node.js, OpenTelemetry, curl, or a Kubernetes service with a name such as `cache`. */
const ofOthers = /^(NODE|OTEL|HTTPS?|NO)_|_(SERVICE_(HOST|PORT)|PORT)(_|$)/;

/** Were settings once and begin like none: what stands in their place. */
const gone: Readonly<Record<string, string>> = {
  WORKERS: 'each process is one gateway; run several over one store',
  CALLBACK_ORIGINS: 'HTTP callbacks are not served; routers subscribe over WebSocket',
  DOCS_URL: 'errors link no page; docs/errors.md explains their codes',
};

/** Variables that begin like a setting and are none, and those with a letter wrong: `UPSTREAM_BASEURL`, `UPSTRAEM_BASE_URL`. */
function unknown(env: Environment): string[] {
  const all = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]));
  const known = all.filter((name) => name.includes('_'));
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name) || name === 'FTP_PROXY') return [];
    if (Object.hasOwn(gone, name)) return [`${name} is not a setting: ${gone[name]}`];
    const begin = ofOthers.test(name) ? undefined : /^[A-Z]+_/.exec(name)?.[0];
    const alike = begin === undefined ? [] : known.filter((each) => each.startsWith(begin));
    const nearest = alike.length > 0 ? closest(name, alike) : known.find((each) => distance(each, name) <= 2);
    if (nearest === undefined) return [];
    const nodes = name.endsWith('_CA_FILE') ? 'NODE_EXTRA_CA_CERTS or ' : '';
    return [`${name} is not a setting: did you mean ${nodes}${nearest}?`];
  });
}

function almostProduction({ NODE_ENV: word = '' }: Environment): string[] {
  if (word === 'production' || !/^prod(uction)?$/i.test(word)) return [];
  return ['NODE_ENV must be exactly production to turn introspection and explorers off: did you mean that?'];
}
