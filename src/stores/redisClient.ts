import { Cluster, Redis, type RedisOptions } from 'ioredis';
import dataHandler from 'ioredis/built/DataHandler.js';
import { urlOf } from '../process/hosts.js';
import { ConfigError } from '../process/systemErrors.js';

type RedisAddress = ReturnType<typeof parseRedisUrl>;

const urlForm =
  /^redis(?<tls>s?)(?:\+(?<form>sentinel|cluster))?:\/\/(?:(?<login>[^/?#]*)@)?(?<hosts>[^/?#@]+)(?:\/(?<path>[^?#@]*))?(?:\?(?<query>[^#]*))?$/;
const knownParameters = { single: ['db'], sentinel: ['db', 'sentinelUsername', 'sentinelPassword'], cluster: [] };
/** Least time between two reconnects to a server that refuses writes; after a failover, a reconnect finds the new master. */
const reconnectEveryMs = 10_000;

/**
 * Understands `redis://`, `rediss://` (TLS), and their `+sentinel` and `+cluster` forms with several hosts. Throws a
 * ConfigError that says what is wrong and repeats nothing of the text, which may hold a password.
 */
export function parseRedisUrl(url: string) {
  const parts = urlForm.exec(url)?.groups;
  if (!parts) throw misread('is not a redis URL');
  const { login = '', hosts = '', path = '', query } = parts;
  const mode = (parts['form'] ?? 'single') as keyof typeof knownParameters;
  const parameters = new URLSearchParams(query?.replaceAll('+', '%2B')); // not a form: a password may hold a plus sign
  const known: readonly string[] = knownParameters[mode];
  if ([...parameters.keys()].some((name) => !known.includes(name))) {
    throw misread(`has an unknown query parameter; known here: ${known.join(', ') || 'none'}`);
  }
  const nodes = hosts.split(',').map((node) => hostAndPort(node, mode === 'sentinel' ? 26379 : 6379));
  if (mode === 'single' && nodes.length > 1) throw wrongUrl('names several hosts, but not +sentinel or +cluster');
  if (mode === 'sentinel' && path === '') throw wrongUrl('must end with the name of the sentinel group');
  if (mode === 'cluster' && path !== '') throw wrongUrl('must not name a database: a cluster has only one');
  const database = parameters.get('db') ?? (mode === 'single' ? path : '');
  if (!/^\d{0,4}$/.test(database)) throw misread('must end with a database number, or with nothing');
  const [username, ...password] = login.split(':');
  return {
    mode,
    tls: parts['tls'] === 's',
    nodes,
    username: decode(username) || undefined,
    password: password.length > 0 ? decode(password.join(':')) : undefined,
    database: Number(database),
    /** The group, and the credentials of the sentinels themselves. */
    sentinel: {
      name: decode(path),
      sentinelUsername: parameters.get('sentinelUsername') ?? undefined,
      sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
    },
  };
}

// The driver ignores what becomes of commands of its own: ASKING, while a slot of a cluster moves, and SUBSCRIBE, a minute after
// it lost a sentinel. A rejection that nobody handles would end the process.
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function (command, stream) {
  command.promise.catch((error) => {
    // The command after it fails, too, without this reason.
    if (command.name === 'asking') this.emit('error', error);
  });
  return sendCommand.call(this, command, stream);
};

// The driver throws errors about a reply, such as one that nobody asked for, in a tick of their own, where they end the process.
// Thrown at once, they end the connection.
Object.assign(dataHandler.default.prototype, { dispatch: (take: () => void) => take() });

/**
 * A client that never queues commands while disconnected, never repeats one, and reconnects for ever. It does not connect
 * until told to. Its user must listen to its connection errors.
 */
export function createRedisClient(address: RedisAddress): Redis | Cluster {
  const { username, password, tls, nodes } = address;
  let reconnectedAt = -Infinity;
  const backoff = (attempt: number) => Math.min(50 * 2 ** attempt, 2000) * (0.5 + Math.random() / 2);
  const reconnectOnError = (error: Error) => {
    if (!error.message.includes('READONLY') || performance.now() - reconnectedAt < reconnectEveryMs) return false;
    reconnectedAt = performance.now();
    return true;
  };
  const offline = { lazyConnect: true, enableOfflineQueue: false };
  const common = {
    protocol: 2, // the third needs a right to HELLO, and nothing here uses what it adds
    username,
    password,
    connectTimeout: 2000,
    disconnectTimeout: 500,
    socketTimeout: 3000, // for an answer: detects a dead peer that never closes its socket
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    reconnectOnError,
    ...(tls && { tls: {} }),
  } satisfies RedisOptions;
  const behindSentinels = {
    ...address.sentinel,
    sentinels: nodes,
    sentinelRetryStrategy: backoff,
    sentinelCommandTimeout: 1000,
    failoverDetector: true, // without it, a master that stood still and was replaced took 10 s of writes that were lost
    ...(tls && { sentinelTLS: {}, enableTLSForSentinelMode: true }),
  } satisfies RedisOptions;
  if (address.mode === 'cluster') {
    return new Cluster(nodes, {
      ...offline,
      redisOptions: common,
      clusterRetryStrategy: backoff,
      maxRedirections: 4, // each takes 100 ms while a node is gone: with more, the time limit of a command would hide the cause
      // A certificate names hosts, so under TLS host names must not be replaced by addresses.
      ...(tls && { dnsLookup: (host, answer) => answer(null, host) }),
    });
  }
  const client = new Redis({
    ...offline,
    ...common,
    ...(address.mode === 'sentinel' ? behindSentinels : nodes[0]),
    db: address.database,
    retryStrategy: backoff,
  });
  client.on('error', (error: { readonly command?: { readonly name: string } }) => {
    if (error.command?.name === 'select') client.disconnect(true); // the driver would go on in database 0
  });
  return client;
}

function hostAndPort(text: string, defaultPort: number): { host: string; port: number } {
  const address = `redis://${text}`;
  const { hostname = '', port = '' } = urlOf(address) ?? {};
  if (hostname === '' || /\s/.test(text)) throw misread('has a host that is not of the form name:port');
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || defaultPort) };
}

function decode(text = ''): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrongUrl('has a part that is not percent-encoded correctly');
  }
}

const wrongUrl = (what: string) => new ConfigError(`CACHE_URL ${what}`);

/** For a part that is often wrong because of a slash, question mark or hash in the password that was not percent-encoded. */
const misread = (what: string) => wrongUrl(`${what}; user and password must be percent-encoded`);
