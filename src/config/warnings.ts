import { closest, distance } from 'fastest-levenshtein';
import { settings } from './settings.js';

/** For a real service that listens beyond loopback. */
export const explorersAreOpen =
  'NODE_ENV is not production: introspection, the explorers and CORS for Apollo Sandbox are on for everyone who can reach HOST. Set NODE_ENV=production, or INTROSPECTION if this is meant';

/** Begin like a setting, but are of Node.js, OpenTelemetry, curl, or a Kubernetes service with a name such as `cache`. */
const ofOthers = /^(NODE|OTEL|HTTPS?|NO)_|_(SERVICE_(HOST|PORT)|PORT)(_|$)/;

const names = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]));

/** What looks like a typing mistake: worth a warning, not a refusal. */
export function warningsOf(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    const nearest = nearestTo(name);
    if (nearest !== undefined) return `${name} is not a setting: did you mean ${nearest}?`;
    // A shell removes quotation marks; files of variables such as those of `docker run --env-file` keep them.
    const isQuoted = names.includes(name) && /^(["']).*\1$/.test(value);
    return isQuoted ? `${name} is in quotation marks, which count as part of it: did you mean that?` : [];
  });
}

/** The setting that is meant by a name that begins like one, or has a letter wrong: `UPSTREAM_BASEURL`, `UPSTRAEM_BASE_URL`. */
function nearestTo(name: string): string | undefined {
  if (names.includes(name) || name === 'FTP_PROXY') return undefined;
  const [begin = ''] = /^[A-Z]+_/.exec(name) ?? [];
  const beginsLikeOurs = !ofOthers.test(name) && names.some((each) => begin !== '' && each.startsWith(begin));
  const nearest = closest(name, names);
  return beginsLikeOurs || (nearest.includes('_') && distance(nearest, name) <= 2) ? nearest : undefined;
}
