import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type Config, loadConfig } from '../../src/config/config.js';
import { startGateway } from '../../src/server.js';
import { atEnd } from './atEnd.js';
import { startIdentityProvider } from './identityProvider.js';
import { type Program, startProgram } from './program.js';
import { type SandboxOptions, startSandbox } from './sandbox.js';
import { scratch } from './scratch.js';
import { until } from './until.js';

/** A response of `/graphql` as a client sees it. */
export interface Answer<Data = Record<string, never>> {
  readonly status: number;
  readonly headers: Headers;
  readonly data?: Data | null;
  readonly errors?: readonly AnswerError[];
}

export interface AnswerError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: {
    readonly code: string;
    readonly retryable: boolean;
    readonly requestId: string;
    readonly retryAfterSeconds?: number;
    readonly violations?: readonly { readonly path: string; readonly message: string }[];
  };
}

export type TestGateway = Awaited<ReturnType<typeof startTestGateway>>;

/** Headers, settings and the like, by their names. */
export type Texts = Readonly<Record<string, string>>;

export type Environment = Readonly<Record<string, string | undefined>>;

/** The same document in a text that never came before, so that Apollo executes it. */
export const newText = (query: string): string => `${query}\n# ${randomUUID()}`;

/** What no setting changes, for tests that need it small. */
export type Bounds = Partial<Config>;

export const configWith = (bounds: Bounds, env: Environment): Config => ({ ...loadConfig(env), ...bounds });

/**
 * A gateway in this process over a sandbox of its own, on free ports. It uses a memory store and no authentication, unless
 * `env` says otherwise. As everything that is started here, it ends by itself: see {@link atEnd}.
 */
export async function startTestGateway(
  env: Environment = {},
  sandboxOptions: Partial<SandboxOptions> = {},
  bounds: Bounds = {},
) {
  const sandbox = await startSandbox(sandboxOptions);
  /** Every log line so far. */
  const logs: string[] = [];
  const config = configWith(bounds, { ...environmentFor(sandbox), ...env });
  const gateway = await startGateway(config, { write: (line) => logs.push(line) });
  const stop = async () => {
    await gateway.stop();
    await sandbox.stop();
  };
  atEnd(stop);
  const origin = `http://127.0.0.1:${gateway.port}`;
  return {
    gateway,
    origin,
    sandbox,
    logs,
    /** The same as one text. */
    output: () => logs.join(''),
    query: <Data = Record<string, never>>(query: string, variables?: object, headers?: Texts) =>
      postQuery<Data>(origin, query, variables, headers),
    stop,
  };
}

/** The settings that point a gateway at a sandbox. Its store is in memory. */
export function environmentFor(sandbox: { url: string; clientId: string; clientSecret: string }): Environment {
  return {
    PORT: '0',
    HOST: '127.0.0.1',
    AUTH_MODE: 'disabled',
    UPSTREAM_BASE_URL: sandbox.url,
    UPSTREAM_CLIENT_ID: sandbox.clientId,
    UPSTREAM_CLIENT_SECRET: sandbox.clientSecret,
    CACHE_URL: 'memory:',
    DRAIN_TIMEOUT_MS: '0',
  };
}

/** Settings under which a watcher sees a change of a job at once. */
export const quickPolls = { JOB_POLL_MIN_MS: '20', JOB_POLL_MAX_MS: '50' };

/** An identity provider, and the settings that make a gateway trust it. */
export async function startTrustedProvider() {
  const provider = await startIdentityProvider();
  const env: Environment = {
    AUTH_MODE: 'jwt',
    AUTH_JWKS_URL: provider.jwksUrl,
    AUTH_ISSUER: provider.issuer,
    AUTH_AUDIENCE: provider.audience,
  };
  return {
    ...provider,
    env,
    /** The Authorization header of a caller who may watch the jobs of these taxpayers. */
    watcherOf: async (taxpayers: readonly string[], expiresIn = 300, scope = 'refresh-jobs:read taxpayers:read') =>
      `Bearer ${await provider.token({ scope, taxpayer_ids: taxpayers }, { expiresIn })}`,
  };
}

export type TrustedProvider = Awaited<ReturnType<typeof startTrustedProvider>>;

/** Sends JSON, given as a value or as its text. */
export function post(url: string, body: unknown, headers: Texts = {}, more: RequestInit = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
    ...more,
  });
}

/** Sends one operation as a plain HTTP client does. */
export async function postQuery<Data>(
  origin: string,
  query: string,
  variables: object = {},
  headers: Texts = {},
): Promise<Answer<Data>> {
  const response = await post(`${origin}/graphql`, { query, variables }, headers);
  const body = (await response.json()) as Omit<Answer<Data>, 'status' | 'headers'>;
  return { status: response.status, headers: response.headers, ...body };
}

/** Reads the record of a taxpayer. @throws when the answer is anything else */
export async function readTaxpayer(origin: string, id: string): Promise<void> {
  const document = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { taxpayerId } }';
  const { data, errors } = await postQuery<{ taxpayerToken: { taxpayerId: string } }>(origin, document, { id });
  if (errors || data?.taxpayerToken.taxpayerId !== id) throw new Error(`${id}: ${JSON.stringify({ data, errors })}`);
}

/** The codes of the errors of an answer. */
export const codesOf = ({ errors = [] }: Pick<Answer, 'errors'>) => errors.map(({ extensions }) => extensions.code);

/** The lines of a log, parsed, that have these members. */
export function linesWith(logs: readonly string[], members: Readonly<Record<string, unknown>>) {
  const lines = logs.flatMap((text) => text.trim().split('\n')).map((line) => JSON.parse(line));
  return lines.filter((line) => Object.entries(members).every(([name, value]) => line[name] === value));
}

/** The sum of the series of `/metrics` whose lines begin so. @throws when there is no metric of this name */
export async function metric({ origin }: { readonly origin: string }, beginning: string): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const [name] = beginning.split(/_count|{/);
  if (!text.includes(`# TYPE ${name} `)) throw new Error(`There is no metric ${name}`);
  const lines = text.split('\n').filter((line) => line.startsWith(beginning));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Resolves when {@link metric} is `value`. */
export const whenMetric = (
  gateway: { readonly origin: string },
  beginning: string,
  value: number,
  timeoutMs?: number,
) => until(async () => (await metric(gateway, beginning)) === value, timeoutMs);

export type GatewayProcess = Awaited<ReturnType<typeof spawnGateway>>;

/** The file that starts the built gateway. */
export const entry = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The built gateway as a process of its own, with only `env` and PATH. Resolves when it is ready, rejects when it exits. */
export async function spawnGateway(env: Environment) {
  const launched = launchGateway(env);
  return {
    ...launched,
    origin: await readyOrigin(launched),
    /** Sends SIGTERM and resolves with the exit code. */
    stop: async () => {
      launched.signal('SIGTERM');
      return launched.exited;
    },
  };
}

/** Where a gateway that is starting will serve. */
export async function readyOrigin({ printed }: Pick<Program, 'printed'>): Promise<string> {
  return `http://127.0.0.1:${await printed(/"graphql":"https?:\/\/[^"]*:(\d+)\/graphql"/)}`;
}

/** The built gateway as a process with its own working directory. Does not wait until it is ready. */
export function launchGateway(env: Environment, args: readonly string[] = []) {
  const options = { env: { PATH: process.env['PATH'], ...env }, cwd: scratch() };
  return startProgram(process.execPath, [entry, ...args], options);
}
