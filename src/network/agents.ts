import dns from 'node:dns';
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { HttpsProxyAgent } from 'https-proxy-agent';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/Secret.js';
import { inUrl, isLoopback, urlOf } from '../process/hosts.js';
import { codeOf } from '../process/systemErrors.js';
import { followPemFiles, type Pem, type PemFiles, type Reporting, readPemFiles } from './pemFiles.js';

/** HTTP agents for calls to the service, and for those to others: identity provider, decision point and collector. */
export function startAgents(config: Config, reporting?: Reporting) {
  const service = new Agents(config, config.upstreamTls, reporting);
  const others = new Agents(config);
  return {
    service,
    others,
    stop: () => {
      service.stop();
      others.stop();
    },
  };
}

type ProxySettings = Partial<Pick<Config, 'HTTPS_PROXY' | 'HTTP_PROXY' | 'NO_PROXY'>>;

/** How calls reach remote parties: through which proxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), and with which certificates. */
export class Agents {
  readonly #shared = new Map<string, HttpAgent>();
  readonly #proxies: Readonly<Record<string, ProxyAddress | undefined>>;
  /** The hosts that are reached without a proxy. */
  readonly #direct: readonly string[];
  #pem: Pem = {};

  /** With `reporting`, follows changes of the files. @throws ConfigError in one line, when a file cannot be used */
  constructor({ HTTPS_PROXY, HTTP_PROXY, NO_PROXY = [] }: ProxySettings, files?: PemFiles, reporting?: Reporting) {
    this.#proxies = { 'https:': proxyOf(HTTPS_PROXY), 'http:': proxyOf(HTTP_PROXY) };
    this.#direct = NO_PROXY.map(plainHost);
    if (files === undefined) return;
    const renew = (renewed: Pem) => {
      this.#pem = renewed;
      for (const [origin, agent] of this.#shared) this.retire(origin, agent);
    };
    this.#pem = reporting ? followPemFiles(files, reporting, renew) : readPemFiles(files);
  }

  /** The agent shared by calls to an origin. Ask for it at each call: renewed certificates come with a new one. */
  agentFor(url: URL): HttpAgent {
    const agent = this.#shared.get(url.origin) ?? this.newAgent(url);
    this.#shared.set(url.origin, agent);
    return agent;
  }

  /**
   * Has new calls to the origin make new connections, because a call by this agent has failed: all that it keeps may lead to the
   * same broken server, as after a failover of a balancer of connections. Requests in flight finish on theirs, which then end.
   */
  retire(origin: string, failed: unknown): void {
    const agent = this.#shared.get(origin);
    if (agent === undefined || agent !== failed) return; // a late failure must not end the connections of its successor
    this.#shared.delete(origin);
    agent.maxFreeSockets = 0;
    for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
  }

  stop(): void {
    for (const agent of this.#shared.values()) agent.destroy();
  }

  /**
   * An agent that the caller destroys. Calls `onOpen` when a connection is open and, for `https:`, the certificate accepted: until
   * then the request cannot have arrived, whatever the error says.
   */
  newAgent(url: URL, onOpen?: () => void): HttpAgent {
    const agent = this.#bareAgent(url, this.#proxyFor(url));
    beforeRequests(agent, (request) => {
      if (onOpen) request.once('socket', (socket) => whenOpen(socket, onOpen));
      request.once('response', hideChunks);
    });
    return agent;
  }

  #bareAgent({ protocol }: URL, proxy?: ProxyAddress): HttpAgent {
    if (protocol !== 'https:') return proxy ? forwardingAgent(proxy) : new HttpAgent(keepAlive);
    return proxy ? new TunnelAgent(proxy, this.#pem) : new HttpsAgent({ ...keepAlive, ...this.#pem });
  }

  /** Loopback addresses are always reached directly. A name in NO_PROXY covers its subdomains; `*` covers every host. */
  #proxyFor({ protocol, hostname }: URL): ProxyAddress | undefined {
    const host = plainHost(hostname);
    if (isLoopback(host)) return undefined;
    const isDirect = this.#direct.some((name) => name === '*' || host === name || host.endsWith(`.${name}`));
    return isDirect ? undefined : this.#proxies[protocol];
  }
}

/** Has `agent` call `prepare` with each request before it gets a connection, to which `options` lead. */
function beforeRequests(
  agent: HttpAgent,
  prepare: (request: ClientRequest, options: { host: string; port: number }) => void,
): void {
  // Node's HTTP client calls this method of an agent; it is missing in the types.
  const connecting = agent as unknown as { addRequest: typeof prepare };
  const addRequest = connecting.addRequest.bind(agent);
  connecting.addRequest = (request, options) => {
    prepare(request, options);
    addRequest(request, options);
  };
}

function whenOpen(socket: Socket, onOpen: () => void): void {
  const isSecure = 'encrypted' in socket;
  if (isSecure || socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', onOpen);
  else if (!socket.destroyed) onOpen(); // it is destroyed if it failed at once, as without a route or a free port
}

/**
 * Hides from node-fetch that an answer comes in chunks: it takes a last chunk that has trailers, or comes in pieces, for a missing
 * one. Node.js itself reports a missing one.
 */
function hideChunks({ headers }: IncomingMessage): void {
  delete headers['transfer-encoding'];
}

/** By name, the callbacks that wait for its addresses. */
const lookups = new Map<string, Parameters<LookupFunction>[2][]>();

/** One lookup of a name at a time. Node.js makes at most two lookups at once: two of a dead name would hold up all others. */
const lookup: LookupFunction = (name, options, answer) => {
  const answers = lookups.get(name) ?? [];
  if (answers.push(answer) > 1) return;
  lookups.set(name, answers);
  dns.lookup(name, options, (...found) => {
    lookups.delete(name);
    for (const each of answers) each(...found);
  });
};

/** A connection that was idle for 30 s is closed: a firewall may forget it soon after, and tell neither side. */
const keepAlive = { keepAlive: true, lookup, timeout: 30_000 };

/** How long a proxy may take to open a tunnel, in milliseconds: less than a call, so that the log blames the proxy. */
const tunnelMs = 3000;

/** A proxy. Its URL has no user and password, so that no library can print them. */
interface ProxyAddress {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

function proxyOf(secret: Secret | undefined): ProxyAddress | undefined {
  if (secret === undefined) return undefined;
  const url = new URL(secret.reveal());
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  Object.assign(url, { username: '', password: '' });
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return { url, headers: credentials === ':' ? {} : { 'Proxy-Authorization': authorization } };
}

/** Calls through a tunnel of the proxy. A failure before it is open gets a code of its own, such as `PROXY_HTTP_407`. */
class TunnelAgent extends HttpsProxyAgent<string> {
  constructor(
    { url, headers }: ProxyAddress,
    private readonly pem: Pem,
  ) {
    super(url.href, { ...keepAlive, headers: () => ({ ...headers }) });
    this.options.timeout = keepAlive.timeout; // the library drops the options of the agent
  }

  override async connect(request: ClientRequest, options: Parameters<HttpsProxyAgent<string>['connect']>[1]) {
    let reason: string | undefined;
    request.once('proxyConnect', ({ statusCode }) => {
      if (statusCode !== 200) reason = statusCode > 0 ? `HTTP_${statusCode}` : 'EPROTO';
    });
    request.once('proxy', ({ socket }) => {
      if (reason === undefined) return;
      socket.destroy();
      throw new Error('no tunnel'); // otherwise the library would return a socket that replays the proxy's answer
    });
    const limit = new AbortController();
    const timer = setTimeout(() => {
      reason = 'TIMEOUT';
      limit.abort();
    }, tunnelMs);
    Object.assign(this.connectOpts, { signal: limit.signal });
    try {
      // The certificates are for the service: the constructor would give them to the proxy as well.
      return await super.connect(request, { ...options, ...this.pem });
    } catch (error) {
      const code = `PROXY_${reason ?? codeOf(error) ?? 'ECONNRESET'}`;
      throw Object.assign(new Error('the proxy did not connect'), { code });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Sends `http:` requests to the proxy, which passes them on (RFC 9112, section 3.2.2). */
function forwardingAgent({ url, headers }: ProxyAddress): HttpAgent {
  const isTls = url.protocol === 'https:';
  const agent = isTls ? new HttpsAgent(keepAlive) : new HttpAgent(keepAlive);
  Object.assign(agent, { protocol: 'http:', defaultPort: 80 }); // of the request, not of the connection
  const host = plainHost(url.hostname);
  const to = { host, port: Number(url.port) || (isTls ? 443 : 80), servername: isIP(host) ? '' : host };
  beforeRequests(agent, (request, options) => {
    request.path = `http://${inUrl(options.host)}:${options.port}${request.path}`;
    for (const [name, value] of Object.entries(headers)) request.setHeader(name, value);
    Object.assign(options, to);
  });
  return agent;
}

/** The canonical form of a host: `.EXAMPLE.com.` becomes `example.com`, and `[2001:db8:0::7]` becomes `2001:db8::7`. */
function plainHost(entry: string): string {
  const name = entry.toLowerCase().replace(/^[.[]|[.\]]$/g, '');
  return urlOf(`http://[${name}]`)?.hostname.slice(1, -1) ?? name;
}
