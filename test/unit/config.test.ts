import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/config.js';
import { type SettingName, settings } from '../../src/config/settings.js';
import { ConfigError } from '../../src/process/systemErrors.js';
import { read } from '../support/repository.js';
import { scratch } from '../support/scratch.js';

const service = { UPSTREAM_BASE_URL: 'http://127.0.0.1:9/', UPSTREAM_CLIENT_ID: 'a', UPSTREAM_CLIENT_SECRET: 'b' };
const open = { ...service, AUTH_MODE: 'disabled' };
const issuer = { AUTH_ISSUER: 'https://a.example', AUTH_AUDIENCE: 'x' };
const planted = 'planted-secret-value';

/** Settings that take almost any text, or whose form would let a control character pass. */
const controlled = [
  ...['HOST', 'UPSTREAM_BASE_URL', 'UPSTREAM_CLIENT_ID', 'UPSTREAM_CLIENT_SECRET', 'UPSTREAM_API_VERSION', 'CACHE_URL'],
  ...['HTTPS_PROXY', 'AUTH_TAXPAYERS_CLAIM', 'PROVIDERS_FILE', 'NODE_ENV'],
] as SettingName[];

type Env = Readonly<Record<string, string>>;
const problemsOf = (env: Env): readonly string[] => {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n');
    throw error;
  }
};

const directory = scratch();

it('Every setting is used', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const text = files.map((name) => (/(?<!settings)\.ts$/.test(name) ? read(`src/${name}`) : '')).join();
  expect(Object.keys(settings).filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([]);
});

describe('Without any variable', () => {
  it('the gateway serves its sandbox to the local developer', () => {
    expect(loadConfig({})).toMatchObject({
      PORT: 4000,
      HOST: '127.0.0.1',
      UPSTREAM_BASE_URL: '',
      UPSTREAM_CLIENT_ID: 'sandbox-client',
      AUTH_MODE: 'developer',
      INTROSPECTION: true,
      RATE_LIMIT_PER_MINUTE: 0,
      warnings: [],
    });
  });

  it.each(['', '\r\n'])('an empty variable counts as absent: %j', (value) => {
    expect(loadConfig(Object.fromEntries(Object.keys(settings).map((name) => [name, value])))).toEqual(loadConfig({}));
  });
});

it.each(Object.entries(settings))(
  'One line break at the end of %s is not part of it',
  (name, { example, fallback }) => {
    const outcomeOf = (value: string) => {
      const env = { ...(name.startsWith('UPSTREAM_CLIENT') ? open : {}), [name]: value };
      const problems = problemsOf(env);
      return problems.length > 0 ? problems : JSON.stringify([loadConfig(env), revealed(loadConfig(env))]);
    };
    const value = example || fallback;
    for (const end of ['\n', '\r\n']) expect(outcomeOf(`${value}${end}`)).toEqual(outcomeOf(value));
  },
);

it('A production gateway of a service is open to all addresses but to no page, keeps what it reads, and polls no more often than asked', () => {
  const given = { UPSTREAM_BASE_URL: 'HTTP://127.0.0.1:9/v1/', JOB_POLL_MIN_MS: '60000' };
  expect(loadConfig({ ...open, NODE_ENV: 'production', ...given })).toMatchObject({
    UPSTREAM_BASE_URL: 'http://127.0.0.1:9/v1',
    HOST: '0.0.0.0',
    CACHE_URL: 'file:.taxpayer-gateway/cache',
    JOB_POLL_MAX_MS: 60_000,
    CORS_ORIGINS: [],
  });
});

it.each([
  [
    'UPSTREAM_CLIENT_ID UPSTREAM_CERT_FILE TLS_CERT_FILE AUTH_DECISION_TOKEN',
    'UPSTREAM_BASE_URL UPSTREAM_CLIENT_SECRET UPSTREAM_KEY_FILE TLS_KEY_FILE AUTH_DECISION_URL AUTH_ISSUER AUTH_AUDIENCE',
  ],
  [
    'UPSTREAM_CLIENT_SECRET UPSTREAM_KEY_FILE TLS_CLIENT_CA_FILE AUTH_DECISION_CLAIMS',
    'UPSTREAM_BASE_URL UPSTREAM_CLIENT_ID UPSTREAM_CERT_FILE TLS_CERT_FILE TLS_KEY_FILE AUTH_DECISION_URL AUTH_ISSUER AUTH_AUDIENCE METRICS_PORT',
  ],
])('What %s need beside them is told at once', (given, missing) => {
  const env = Object.fromEntries(given.split(' ').map((name) => [name, process.execPath]));
  expect(problemsOf(env).map((line) => line.split(' ')[0])).toEqual(missing.split(' '));
});

it('Lists and JSON may be written on several lines', () => {
  const env = {
    CORS_ORIGINS: 'https://a.example,\n\thttps://b.example\n',
    NO_PROXY: 'a\nb',
    AUTH_SCOPES_MAP: '{\n"a":\t[]}',
  };
  expect(loadConfig(env)).toMatchObject({
    CORS_ORIGINS: ['https://a.example', 'https://b.example'],
    NO_PROXY: ['a', 'b'],
  });
});

it.each<[Env, string]>([
  [{ AUTH_MODE: 'disabled', HOST: '0.0.0.0' }, 'AUTH_MODE=disabled: everybody who can connect may see every taxpayer'],
  [
    { NODE_ENV: 'production' },
    'NODE_ENV is production, but UPSTREAM_BASE_URL is not set: the embedded sandbox answers ',
  ],
  ...['"n"', "'n'"].map((AUTH_TAXPAYERS_CLAIM): [Env, string] => [
    { AUTH_TAXPAYERS_CLAIM },
    '^AUTH_TAXPAYERS_CLAIM is in quotation marks, which count as part of it: did you mean that\\?$',
  ]),
])('What an operator may not have meant is a warning: %j', (env, warning) => {
  expect(loadConfig(env).warnings).toEqual([expect.stringMatching(warning)]);
});

it.each<[Env, boolean]>([
  [{}, true],
  [{ NODE_ENV: 'staging' }, true],
  [{ INTROSPECTION: 'true' }, false],
  [{ NODE_ENV: 'production' }, false],
  [{ HOST: '127.0.0.1' }, false],
])(
  'Explorers that others can open in front of a real service are a warning, unless meant or off: %j',
  (env, isTold) => {
    const told = /^NODE_ENV is not production: .* Set NODE_ENV=production, or INTROSPECTION/;
    const { warnings } = loadConfig({ ...open, HOST: '0.0.0.0', ...env });
    expect(warnings.filter((line) => /NODE_ENV|INTROSPECTION/.test(line))).toEqual(
      isTold ? [expect.stringMatching(told)] : [],
    );
  },
);

const day = 86_400_000;
it.each<[Env, number, number, number]>([
  [{}, 0.1, 60_000, day],
  [{ TOKEN_FRESH_SHARE: '0' }, 0, 60_000, day],
  [{ TOKEN_FRESH_SHARE: '1', TOKEN_FRESH_MIN_SECONDS: '5' }, 1, 5000, day],
  [{ TOKEN_FRESH_MIN_SECONDS: '7', TOKEN_FRESH_MAX_SECONDS: '7' }, 0.1, 7000, 7000],
  [{ TOKEN_FRESH_SECONDS: '900' }, 0, 900_000, day],
  [{ TOKEN_FRESH_SECONDS: '172800' }, 0, 2 * day, 2 * day],
  [{ TOKEN_FRESH_SECONDS: '900', TOKEN_FRESH_SHARE: '0.5' }, 0, 900_000, day],
  [{ TOKEN_FRESH_MIN_SECONDS: '300', TOKEN_FRESH_MAX_SECONDS: '200' }, 0.1, 300_000, 300_000],
])('The freshness of a token record with %j is by the share %d, from %d to %d ms', (env, share, minMs, maxMs) => {
  expect(loadConfig(env).freshness).toEqual({ share, minMs, maxMs });
});

describe('A mistake', () => {
  it.each<[Env, string]>([
    [{ PORT: '70000' }, 'PORT must be a whole number from 0 to 65535$'],
    [{ LOG_LEVEL: planted }, 'LOG_LEVEL must be one of'],
    [{ ...service, AUTH_MODE: planted }, 'AUTH_MODE must be one of jwt, developer, disabled$'],
    [{ CACHE_URL: `redi://${planted}` }, 'CACHE_URL must be memory:'],
    [{ CACHE_URL: 'file:~/cache' }, 'CACHE_URL must be memory:, file:<directory> .without // or ~., '],
    ...[planted, `${settings.CACHE_ENCRYPTION_KEY.example},c2hvcnQ=`].map((CACHE_ENCRYPTION_KEY): [Env, string] => [
      { CACHE_ENCRYPTION_KEY },
      'CACHE_ENCRYPTION_KEY must be 32 bytes in base64$',
    ]),
    [{ CACHE_ENCRYPTION_KEY: ' , ' }, 'CACHE_ENCRYPTION_KEY must name at least one$'],
    ...['https://a.example/', 'null', 'https://*.example.com'].map((CORS_ORIGINS): [Env, string] => [
      { CORS_ORIGINS },
      'CORS_ORIGINS must be origins as browsers send them',
    ]),
    [{ AUTH_DECISION_URL: 'decisions.example' }, 'AUTH_DECISION_URL must be an absolute http: or https: URL'],
    [{ AUTH_DECISION_URL: 'https://x.example', AUTH_DECISION_TTL_SECONDS: '0' }, 'AUTH_DECISION_TTL_SECONDS must be a'],
    [
      { AUTH_DECISION_URL: 'https://x.example', AUTH_DECISION_TOKEN: `a b ${planted}` },
      'AUTH_DECISION_TOKEN must be a',
    ],
    [{ AUTH_DECISION_URL: 'https://x.example', AUTH_DECISION_CLAIMS: ',' }, 'AUTH_DECISION_CLAIMS must name at least'],
    ...['ü'.repeat(16), `${settings.FEDERATION_SHARED_SECRET.example},short`].map(
      (FEDERATION_SHARED_SECRET): [Env, string] => [
        { FEDERATION_SHARED_SECRET },
        'FEDERATION_SHARED_SECRET must have at least 16 characters, all printable ASCII$',
      ],
    ),
    [
      { FEDERATION_SHARED_SECRET: 'the-first-of-the-secrets,the-second-of-the-secrets\u0001' },
      'FEDERATION_SHARED_SECRET must be UTF-8',
    ],
    [{ ...open, UPSTREAM_BASE_URL: 'not a url' }, 'UPSTREAM_BASE_URL must be an absolute http: or https: URL'],
    [{ ...open, UPSTREAM_BASE_URL: `https://user:${planted}@x.example` }, 'UPSTREAM_BASE_URL must'],
    ...['ftp://x.example', 'https://x.example/v1?', 'https://x.example/a b', 'https://@x.example'].map(
      (UPSTREAM_BASE_URL): [Env, string] => [
        { ...open, UPSTREAM_BASE_URL },
        'UPSTREAM_BASE_URL must be an absolute http: or https: URL without user name, query, fragment, blanks or backs',
      ],
    ),
    [{ ...open, UPSTREAM_CLIENT_ID: `a:${planted}` }, 'UPSTREAM_CLIENT_ID must not contain a colon$'],
    [{ TOKEN_FRESH_SHARE: '1.1' }, 'TOKEN_FRESH_SHARE must be a number from 0 to 1$'],
    [{ TOKEN_FRESH_SECONDS: '0' }, 'TOKEN_FRESH_SECONDS must be a whole number from 1 to 2592000$'],
    [{ PORT: '4001', METRICS_PORT: '4001' }, 'METRICS_PORT must be another port than PORT$'],
    [{ HTTPS_PROXY: 'ftp://proxy:1080' }, 'HTTPS_PROXY must be the http: or https: URL of a proxy'],
    [{ HTTPS_PROXY: 'https://proxy/path' }, 'HTTPS_PROXY must'],
    [{ http_proxy: 'http://u:100%@proxy' }, 'HTTP_PROXY must be the http: or https: URL of a proxy'],
    [{ NO_PROXY: 'a,10.0.0.0/8' }, 'NO_PROXY must be host names and addresses, .* are not supported$'],
    [{ NO_PROXY: '*.internal' }, 'NO_PROXY must be host names and addresses, without ports, brackets and \\*\\., '],
    [{ NO_PROXY: 'name:8080' }, 'NO_PROXY must be'],
    [{ NO_PROXY: '[2001:db8::7]' }, 'NO_PROXY must be'],
    ...['10.0.0.0/8,proxy.example', '10/8', '010.0.0.0/8', 'loopback', '0.0.0.0/0'].map(
      (TRUSTED_PROXIES): [Env, string] => [{ TRUSTED_PROXIES }, 'TRUSTED_PROXIES must be addresses and ranges'],
    ),
    [{ HOST: '0.0.0.0' }, 'HOST must be a loopback address'],
    [{ ...service, AUTH_MODE: 'developer' }, 'AUTH_MODE must be jwt or disabled with UPSTREAM_BASE_URL'],
    [
      { ...service, AUTH_JWKS_URL: 'https://a.example,https://b.example', AUTH_ISSUER: 'a', AUTH_AUDIENCE: 'x' },
      'AUTH_JWKS_URL must have as many entries as AUTH_ISSUER',
    ],
    [{ ...issuer, AUTH_ISSUER: 'a', AUTH_JWKS_URL: 'b' }, 'AUTH_JWKS_URL must be an absolute'],
    [{ ...issuer, AUTH_ISSUER: 'our-provider' }, 'AUTH_ISSUER must be http: or https: URLs .*set AUTH_JWKS_URL'],
    ...['[]', '{"a":', `{"a":"${planted}"}`, '{"a":["taxpayers:read",7]}'].map((AUTH_SCOPES_MAP): [Env, string] => [
      { AUTH_SCOPES_MAP },
      'AUTH_SCOPES_MAP must be a JSON object such as \\{.*; the scopes are client-links:create, .*taxpayers:any$',
    ]),
    [{ TRUSTED_DOCUMENTS_MODE: 'report' }, 'TRUSTED_DOCUMENTS_FILE is required with TRUSTED_DOCUMENTS_MODE$'],
    [
      { TRUSTED_DOCUMENTS_FILE: '.', TRUSTED_DOCUMENTS_MODE: 'warn' },
      'TRUSTED_DOCUMENTS_MODE must be one of enforce, report$',
    ],
    [{ AUTH_KEYS_MAX_AGE_SECONDS: '60.5' }, 'AUTH_KEYS_MAX_AGE_SECONDS must be a whole number from 60 to 31536000$'],
  ])('in %j is one line that names it and does not repeat it', (env, line) => {
    const problems = problemsOf(env);
    expect(problems).toEqual([expect.stringMatching(`^${line}`)]);
    expect(problems.join()).not.toContain(planted);
    expect(problems.join()).not.toContain('\n');
  });

  it.each(controlled)('in %s that is a control character or not UTF-8 is refused by name', (name) => {
    for (const character of ['\n', '\t', '\u0001', '\u0085', '\ufffd']) {
      const { example, fallback } = settings[name];
      const env = { ...open, [name]: `${example || fallback}${character}${planted}` };
      expect(problemsOf(env)).toEqual([`${name} must be UTF-8 without line breaks, tabs or other control characters`]);
    }
  });

  it.each([
    ['AUTH_ISSUER_FILE', 'AUTH_ISSUER'],
    ['UPSTREAM_CLIENT_SECRET_FIEL', 'UPSTREAM_CLIENT_SECRET_FILE'],
    ['TRUSTED_PEERS', 'TRUSTED_PROXIES'],
    ['RATE_LIMIT', 'RATE_LIMIT_PER_MINUTE'],
  ])('of a name, as in %s, is a warning that names %s', (typed, meant) => {
    const warning = `${typed} is not a setting: did you mean ${meant}?`;
    expect(loadConfig({ [typed]: planted }).warnings).toEqual([warning]);
    expect(problemsOf({ PORT: 'x', [typed]: planted })).toContain(warning);
  });

  it.each([
    ...['PATH', 'HOSTNAME', 'NODE_OPTIONS', 'FTP_PROXY', 'OTEL_SERVICE_NAME', 'KUBERNETES_PORT', 'CACHE_SERVICE_HOST'],
    ...['CACHE_PORT', 'CACHE_PORT_6379_TCP_ADDR'],
    // What a file of variables has in place of an equals sign may be a secret.
    ...['CACHE_ENCRYPTION_KEY: planted', 'UPSTREAM_CLIENT_SECRET planted\nAUTH_MODE', 'CACHE_URI planted'],
  ])('is not seen in %j, which others own or which is more than a name', (name) => {
    expect(loadConfig({ [name]: '"x"' }).warnings).toEqual([]);
  });
});

describe('The examples that are printed', () => {
  const confidential = Object.entries(settings).filter(([, { secret, example }]) => secret && !example.includes('://'));
  const printed = Object.fromEntries(confidential.map(([name, { example }]) => [name, example]));
  const env = { ...service, ...issuer, AUTH_DECISION_URL: 'https://decisions.example', ...printed };

  it('are refused with NODE_ENV=production, one line for each credential', () => {
    const names = Object.keys(printed);
    expect(names).toContain('UPSTREAM_CLIENT_SECRET');
    expect(problemsOf({ ...env, NODE_ENV: 'production' })).toEqual(
      names.map(
        (name) => `${name} is the example of the documentation: expected one of your own with NODE_ENV=production`,
      ),
    );
    const fromFile = { AUTH_DECISION_TOKEN: '', AUTH_DECISION_TOKEN_FILE: join(directory, 'example') };
    writeFileSync(fromFile.AUTH_DECISION_TOKEN_FILE, `${printed['AUTH_DECISION_TOKEN']}\n`);
    expect(problemsOf({ ...env, ...fromFile, NODE_ENV: 'production' })).toHaveLength(names.length);
    const beside = {
      CACHE_ENCRYPTION_KEY: `${Buffer.alloc(32, 7).toString('base64')},${printed['CACHE_ENCRYPTION_KEY']}`,
    };
    expect(problemsOf({ ...env, ...beside, NODE_ENV: 'production' })).toHaveLength(names.length);
  });

  it("may be tried out without it, and a URL among them be somebody's own", () => {
    expect(problemsOf(env)).toEqual([]);
    expect(problemsOf({ ...open, NODE_ENV: 'production', CACHE_URL: settings.CACHE_URL.example })).toEqual([]);
  });
});

describe('Several secrets in one setting', () => {
  const [one, two] = ['the-first-of-the-secrets', 'the-second-of-the-secrets'];
  const keys = [7, 8].map((byte) => Buffer.alloc(32, byte).toString('base64'));

  it.each([',', ', ', ',\n', '\n', '\r\n'])('are separated by %j', (between) => {
    const env = { FEDERATION_SHARED_SECRET: [one, two].join(between), CACHE_ENCRYPTION_KEY: keys.join(between) };
    expect(revealed(loadConfig(env))).toMatchObject({ router: `${one},${two}`, keys });
  });
});

describe('A secret from a file', () => {
  const secrets = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name] : []));
  const key = Buffer.alloc(32, 7).toString('base64');
  const goodValue: Partial<Record<SettingName, string>> = {
    CACHE_URL: 'memory:',
    CACHE_ENCRYPTION_KEY: key,
    HTTPS_PROXY: 'proxy.example:3128',
    HTTP_PROXY: 'http://user:password@proxy.example',
  };
  /** What has to be set for it. */
  const beside: Partial<Record<SettingName, Env>> = {
    UPSTREAM_CLIENT_SECRET: { ...open, UPSTREAM_CLIENT_SECRET: '' },
    AUTH_DECISION_TOKEN: { AUTH_DECISION_URL: 'https://decisions.example' },
  };
  const file = (name: string, content: string) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };

  it.each(secrets)('is possible for %s; a byte order mark and one line break at its end are not part of it', (name) => {
    const value = goodValue[name as SettingName] ?? 'a-secret-of-some-length';
    const rest = beside[name as SettingName] ?? {};
    const direct = JSON.stringify(revealed(loadConfig({ ...rest, [name]: value })));
    for (const content of [value, `${value}\n`, `${value}\r\n`, `\uFEFF${value}`]) {
      const config = loadConfig({ ...rest, [`${name}_FILE`]: file('one', content) });
      expect(JSON.stringify(revealed(config))).toBe(direct);
      const { meaning } = settings[name as SettingName];
      expect(config.secretFiles).toHaveLength(/reloaded when the file changes/i.test(meaning) ? 1 : 0);
    }
  });

  it('is refused beside the variable itself', () => {
    const env = { FEDERATION_SHARED_SECRET: 'sixteen-characters', FEDERATION_SHARED_SECRET_FILE: file('two', planted) };
    expect(problemsOf(env)).toEqual([
      'FEDERATION_SHARED_SECRET and FEDERATION_SHARED_SECRET_FILE are both set: expected one of them',
    ]);
  });

  it('that cannot be read is reported without its path, with all other mistakes', () => {
    const absent = { PROVIDERS_FILE: '/no', TRUSTED_DOCUMENTS_FILE: '/no', FEDERATION_SHARED_SECRET_FILE: '/no' };
    expect(problemsOf({ ...absent, CACHE_ENCRYPTION_KEY_FILE: directory, PORT: 'x' })).toEqual([
      expect.stringMatching(/^PORT /),
      'PROVIDERS_FILE cannot be read (ENOENT)',
      'CACHE_ENCRYPTION_KEY cannot be read from its file (EISDIR)',
      'FEDERATION_SHARED_SECRET cannot be read from its file (ENOENT)',
      'TRUSTED_DOCUMENTS_FILE cannot be read (ENOENT)',
    ]);
  });

  it.each(['UPSTREAM_CLIENT_SECRET', 'CACHE_URL', 'CACHE_ENCRYPTION_KEY', 'FEDERATION_SHARED_SECRET'])(
    'that is empty does not turn off what %s protects',
    (name) => {
      for (const content of ['', '\n']) {
        const env = { ...open, [name]: '', [`${name}_FILE`]: file('empty', content) };
        expect(problemsOf(env)).toEqual([`${name} is missing: its file is empty`]);
      }
    },
  );
});

/** The secrets of a configuration, which print themselves nowhere. */
function revealed(config: ReturnType<typeof loadConfig>) {
  return {
    client: config.UPSTREAM_CLIENT_SECRET.reveal(),
    url: config.CACHE_URL,
    keys: config.CACHE_ENCRYPTION_KEY?.map((key) => key.reveal()),
    decision: config.AUTH_DECISION_TOKEN?.reveal(),
    router: config.FEDERATION_SHARED_SECRET?.reveal(),
  };
}
