import { webUrl } from './forms.js';
import type { Parsed, SettingName } from './settings.js';

/** The parsed settings, and what follows from several of them. */
export interface Facts extends Parsed {
  /** No setting names the service. */
  readonly isSandbox: boolean;
  readonly mode: NonNullable<Parsed['AUTH_MODE']>;
  readonly host: string;
  /** Whether the environment has one of these. */
  readonly isSet: (...names: readonly SettingName[]) => boolean;
}

type Rule = readonly [setting: SettingName, isSo: (s: Facts) => boolean, words: string];

const isJwt = (s: Facts) => s.mode === 'jwt';
const isService = (s: Facts) => !s.isSandbox;
const issuersOf = ({ AUTH_ISSUER = [] }: Facts) => AUTH_ISSUER;
/** Entries of AUTH_AUDIENCE: an audience of all issuers, or an issuer and its audience. */
const audiencesIn = ({ AUTH_AUDIENCE = [] }: Facts) => AUTH_AUDIENCE.map((entry) => entry.split(/ +/));

/** The audiences that tokens of an issuer may have. */
export function audiencesOf(s: Facts, issuer: string): string[] {
  return audiencesIn(s).flatMap(([first = '', second]) =>
    second === undefined ? first : first === issuer ? second : [],
  );
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** What settings must be beside each other; where one is not, the setting and the words are the line of the problem. */
export const rules: readonly Rule[] = [
  needed('UPSTREAM_BASE_URL', isService, 'UPSTREAM_CLIENT_ID or UPSTREAM_CLIENT_SECRET'),
  needed('UPSTREAM_CLIENT_ID', isService, 'UPSTREAM_BASE_URL'),
  needed('UPSTREAM_CLIENT_SECRET', isService, 'UPSTREAM_BASE_URL'),
  needed('UPSTREAM_CERT_FILE', (s) => s.isSet('UPSTREAM_KEY_FILE'), 'UPSTREAM_KEY_FILE'),
  needed('UPSTREAM_KEY_FILE', (s) => s.isSet('UPSTREAM_CERT_FILE'), 'UPSTREAM_CERT_FILE'),
  [
    'UPSTREAM_BASE_URL',
    (s) => !s.isSet('UPSTREAM_CA_FILE', 'UPSTREAM_CERT_FILE') || !!s.UPSTREAM_BASE_URL?.startsWith('https:'),
    'must be an https: URL with UPSTREAM_CA_FILE or UPSTREAM_CERT_FILE',
  ],
  needed('TLS_CERT_FILE', (s) => s.isSet('TLS_KEY_FILE', 'TLS_CLIENT_CA_FILE'), 'TLS_KEY_FILE or TLS_CLIENT_CA_FILE'),
  needed('TLS_KEY_FILE', (s) => s.isSet('TLS_CERT_FILE'), 'TLS_CERT_FILE'),
  needed('TRUSTED_DOCUMENTS_FILE', (s) => s.isSet('TRUSTED_DOCUMENTS_MODE'), 'TRUSTED_DOCUMENTS_MODE'),
  [
    'AUTH_MODE',
    (s) => s.mode !== 'developer' || s.isSandbox,
    'must be jwt or disabled with UPSTREAM_BASE_URL: developer is for the embedded sandbox',
  ],
  [
    'HOST',
    (s) => s.mode !== 'developer' || !s.isSandbox || isLoopback(s.host),
    'must be a loopback address while every caller is the local developer: set AUTH_ISSUER and AUTH_AUDIENCE, or AUTH_MODE=disabled',
  ],
  needed('AUTH_ISSUER', isJwt, 'AUTH_MODE=jwt (AUTH_MODE=disabled lets anyone in)'),
  needed('AUTH_AUDIENCE', isJwt, 'AUTH_MODE=jwt (AUTH_MODE=disabled lets anyone in)'),
  [
    'AUTH_JWKS_URL',
    (s) => !isJwt(s) || [undefined, issuersOf(s).length].includes(s.AUTH_JWKS_URL?.length),
    'must have as many entries as AUTH_ISSUER: they pair one by one',
  ],
  [
    'AUTH_ISSUER',
    (s) => !isJwt(s) || !!s.AUTH_JWKS_URL || issuersOf(s).every((issuer) => webUrl.safeParse(issuer).success),
    'must be http: or https: URLs without query or fragment, as discovery needs them; expected AUTH_JWKS_URL otherwise',
  ],
  ['AUTH_ISSUER', (s) => new Set(issuersOf(s)).size === issuersOf(s).length, 'must not name an issuer twice'],
  [
    'AUTH_AUDIENCE',
    (s) => audiencesIn(s).every(([first = '', own, more]) => !own || (issuersOf(s).includes(first) && !more)),
    'must be audiences, or one of AUTH_ISSUER, a space and its audience, separated by commas',
  ],
  [
    'AUTH_AUDIENCE',
    (s) => issuersOf(s).every((issuer) => audiencesOf(s, issuer).length > 0),
    'must name one for each of AUTH_ISSUER',
  ],
  needed(
    'AUTH_DECISION_URL',
    (s) => s.isSet('AUTH_DECISION_TOKEN', 'AUTH_DECISION_CLAIMS', 'AUTH_DECISION_TTL_SECONDS'),
    'AUTH_DECISION_TOKEN, AUTH_DECISION_CLAIMS or AUTH_DECISION_TTL_SECONDS',
  ),
  [
    'AUTH_DECISION_URL',
    (s) => s.mode !== 'disabled' || s.AUTH_DECISION_URL === undefined,
    'is about callers with access tokens: expected without AUTH_MODE=disabled',
  ],
  needed('METRICS_PORT', (s) => s.isSet('TLS_CLIENT_CA_FILE'), 'TLS_CLIENT_CA_FILE, for probes without a certificate'),
  ['METRICS_PORT', (s) => s.METRICS_PORT !== s.PORT, 'must differ from PORT'],
  ['JOB_POLL_MAX_MS', (s) => (s.JOB_POLL_MAX_MS ?? Infinity) >= s.JOB_POLL_MIN_MS, 'must not be below JOB_POLL_MIN_MS'],
  [
    'TOKEN_FRESH_SECONDS',
    (s) =>
      !s.TOKEN_FRESH_SECONDS || !s.isSet('TOKEN_FRESH_SHARE', 'TOKEN_FRESH_MIN_SECONDS', 'TOKEN_FRESH_MAX_SECONDS'),
    'is a fixed freshness: expected without TOKEN_FRESH_SHARE, TOKEN_FRESH_MIN_SECONDS and TOKEN_FRESH_MAX_SECONDS',
  ],
  [
    'TOKEN_FRESH_MIN_SECONDS',
    (s) => s.TOKEN_FRESH_MIN_SECONDS <= s.TOKEN_FRESH_MAX_SECONDS,
    '(60 unless set) must not be above TOKEN_FRESH_MAX_SECONDS (86400 unless set)',
  ],
];

/** The setting has to have a value when `isNeeded`. */
function needed(setting: SettingName, isNeeded: (s: Facts) => boolean, beside: string): Rule {
  return [setting, (s) => s[setting] !== undefined || !isNeeded(s), `is required with ${beside}`];
}
