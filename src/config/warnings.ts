import { distance } from 'fastest-levenshtein';
import { settings } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** What looks like a typing mistake: worth a warning, not a refusal. */
export function warningsOf(env: Environment): string[] {
  return [...misspelled(env), ...almostProduction(env)];
}

/** Variables of ours with a letter wrong: `UPSTREAM_BASEURL`. Names that other programs own are left alone. */
function misspelled(env: Environment): string[] {
  const known = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]));
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name) || name.length < 6 || name === 'FTP_PROXY') return [];
    const meant = known.find((candidate) => candidate.includes('_') && distance(candidate, name) <= 2);
    return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
  });
}

function almostProduction({ NODE_ENV: word = '' }: Environment): string[] {
  if (word === 'production' || !/^prod(uction)?$/i.test(word)) return [];
  return ['NODE_ENV must be exactly production to turn introspection and explorers off: did you mean that?'];
}
