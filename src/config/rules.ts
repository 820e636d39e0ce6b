import { closest } from 'fastest-levenshtein';
import { isLoopback } from '../process/hosts.js';
import { webUrl } from './forms.js';
import { type Parsed, type SettingName, settings } from './settings.js';

export type Facts = ReturnType<typeof factsOf>;

/** Whether a setting has a value, perhaps a wrong one. */
type IsGiven = (setting: SettingName) => boolean;

/** The parsed settings, and what follows from several of them. */
export function factsOf(parsed: Parsed, isGiven: IsGiven) {
  const isSandbox =
    !isGiven('UPSTREAM_BASE_URL') && !isGiven('UPSTREAM_CLIENT_ID') && !isGiven('UPSTREAM_CLIENT_SECRET');
  const usualMode = isSandbox && !isGiven('AUTH_ISSUER') && !isGiven('AUTH_JWKS_URL') ? 'developer' : 'jwt';
  return {
    ...parsed,
    /** No setting names the service. */
    isSandbox,
    /** A wrong mode counts as `disabled`, for which no other setting is needed: its own line is enough. */
    AUTH_MODE: parsed.AUTH_MODE ?? (isGiven('AUTH_MODE') ? 'disabled' : usualMode),
    HOST: parsed.HOST ?? (isSandbox ? '127.0.0.1' : '0.0.0.0'),
  };
}

type Condition = (s: Facts, isGiven: IsGiven) => boolean;
type Rule = readonly [setting: SettingName, holds: Condition, words: string];

const isJwt = (s: Facts) => s.AUTH_MODE === 'jwt';

/** What must hold between settings. Where it does not, the setting and the words make the line that tells the problem. */
export const rules: readonly Rule[] = [
  neededWith('UPSTREAM_BASE_URL', 'UPSTREAM_CLIENT_ID', 'UPSTREAM_CLIENT_SECRET'),
  neededWith('UPSTREAM_CLIENT_ID', 'UPSTREAM_BASE_URL', 'UPSTREAM_CLIENT_SECRET'),
  neededWith('UPSTREAM_CLIENT_SECRET', 'UPSTREAM_BASE_URL', 'UPSTREAM_CLIENT_ID'),
  neededWith('UPSTREAM_CERT_FILE', 'UPSTREAM_KEY_FILE'),
  neededWith('UPSTREAM_KEY_FILE', 'UPSTREAM_CERT_FILE'),
  neededWith('TLS_CERT_FILE', 'TLS_KEY_FILE', 'TLS_CLIENT_CA_FILE'),
  neededWith('TLS_KEY_FILE', 'TLS_CERT_FILE'),
  neededWith('TRUSTED_DOCUMENTS_FILE', 'TRUSTED_DOCUMENTS_MODE'),
  neededWith('AUTH_DECISION_URL', 'AUTH_DECISION_TOKEN', 'AUTH_DECISION_CLAIMS'),
  [
    'AUTH_MODE',
    (s) => s.AUTH_MODE !== 'developer' || s.isSandbox,
    'must be jwt or disabled with UPSTREAM_BASE_URL: developer is for the embedded sandbox',
  ],
  [
    'HOST',
    (s) => s.AUTH_MODE !== 'developer' || !s.isSandbox || isLoopback(s.HOST),
    'must be a loopback address while every caller is the local developer: set AUTH_ISSUER and AUTH_AUDIENCE, or AUTH_MODE=disabled',
  ],
  needed('AUTH_ISSUER', isJwt, 'AUTH_MODE=jwt (AUTH_MODE=disabled lets anyone in)'),
  needed('AUTH_AUDIENCE', isJwt, 'AUTH_MODE=jwt (AUTH_MODE=disabled lets anyone in)'),
  [
    'AUTH_JWKS_URL',
    (s) => !isJwt(s) || !s.AUTH_JWKS_URL || s.AUTH_JWKS_URL.length === s.AUTH_ISSUER?.length,
    'must have as many entries as AUTH_ISSUER: they pair one by one',
  ],
  [
    'AUTH_ISSUER',
    (s, isGiven) =>
      !isJwt(s) || isGiven('AUTH_JWKS_URL') || (s.AUTH_ISSUER ?? []).every((each) => webUrl.safeParse(each).success),
    'must be http: or https: URLs without query or fragment, as discovery needs them: for others, set AUTH_JWKS_URL',
  ],
  neededWith('METRICS_PORT', 'TLS_CLIENT_CA_FILE'),
  ['METRICS_PORT', (s) => s.METRICS_PORT !== s.PORT, 'must be another port than PORT'],
];

/** The setting has to have a value when `isNeeded`. */
function needed(setting: SettingName, isNeeded: Condition, beside: string): Rule {
  return [setting, (s, isGiven) => isGiven(setting) || !isNeeded(s, isGiven), `is required with ${beside}`];
}

/** The setting has to have a value when one of the others is given. */
function neededWith(setting: SettingName, ...others: SettingName[]): Rule {
  return needed(setting, (_, isGiven) => others.some(isGiven), others.join(' or '));
}

/** What an operator may not have meant, although it is allowed. */
const dangers: readonly (readonly [isThere: (s: Facts) => boolean, words: string])[] = [
  [(s) => s.AUTH_MODE === 'disabled', 'AUTH_MODE=disabled: everybody who can connect may see every taxpayer'],
  [
    (s) => s.isSandbox && s.NODE_ENV === 'production',
    'NODE_ENV is production, but UPSTREAM_BASE_URL is not set: the embedded sandbox answers in place of the service',
  ],
  [
    (s) => !s.isSandbox && !isLoopback(s.HOST) && s.NODE_ENV !== 'production' && s.INTROSPECTION === undefined,
    'NODE_ENV is not production: introspection, the explorers and CORS for Apollo Sandbox are on for everyone who can reach HOST. Set NODE_ENV=production, or INTROSPECTION if this is meant',
  ],
];

/** The warnings about what the settings say together. */
export function dangersIn(s: Facts): string[] {
  return dangers.flatMap(([isThere, words]) => (isThere(s) ? words : []));
}

/** Names that begin like a setting, but are of Node.js, OpenTelemetry, curl, or a Kubernetes service named `cache`, say. */
const ofOthers = /^(NODE|OTEL|HTTPS?|NO)_|_(SERVICE_(HOST|PORT)|PORT)(_|$)/;

const names = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]));

/** Warnings about what looks like a typing mistake; another program may have meant it. */
export function typingMistakesIn(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => {
    if (!names.includes(name)) {
      const nearest = nearestTo(name);
      return nearest === undefined ? [] : `${name} is not a setting: did you mean ${nearest}?`;
    }
    // A shell removes quotation marks; files of variables such as those of `docker run --env-file` keep them.
    const isQuoted = /^(["']).*\1$/.test(value);
    return isQuoted ? `${name} is in quotation marks, which count as part of it: did you mean that?` : [];
  });
}

/**
 * The setting that is meant by a name that begins like a setting, such as `UPSTREAM_BASEURL`, or ends early: `RATE_LIMIT`. In a
 * file of variables, a line such as `NAME: value` makes a name that holds a secret: only plain names are looked at.
 */
function nearestTo(name: string): string | undefined {
  const [, begin] = /^([A-Z]+_)[A-Z0-9_]*$/.exec(name) ?? [];
  const beginsLikeOurs = begin !== undefined && !ofOthers.test(name) && names.some((each) => each.startsWith(begin));
  return beginsLikeOurs ? (names.find((each) => each.startsWith(name)) ?? closest(name, names)) : undefined;
}
