import { Agent as HttpAgent } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Config } from '../config/config.js';
import type { Logger } from '../observability/log.js';
import { Proxies } from './Proxies.js';
import { type Destination, ForwardingAgent, openTunnel, type WhenOpen } from './proxyConnections.js';
import { followTlsFiles, readTlsFiles, type TlsFiles, type TlsMaterial } from './tlsFiles.js';

/** Makes agents for one address. */
export type NewAgent = (options: AgentOptions) => HttpAgent;

/** How calls reach remote parties: through which proxy, and with which certificates. */
export class WayOut {
  readonly #proxies: Proxies;
  readonly #certificates: Certificates | undefined;
  /** By origin. */
  readonly #agents = new Map<string, HttpAgent | undefined>();

  /** With a `log`, follows changes of the files. @throws ConfigError in one line, when a file cannot be used */
  constructor(proxies: Config['proxies'], files?: TlsFiles, log?: Logger) {
    this.#proxies = new Proxies(proxies);
    this.#certificates = files && new Certificates(files, log);
  }

  /** A factory of agents for `address`; undefined when it needs no proxy and no certificates. */
  newAgentFor(address: string): NewAgent | undefined {
    const url = new URL(address);
    return this.#needsOwnAgent(url) ? (options) => this.#newAgent(url, options) : undefined;
  }

  /** The agent shared by calls to `url`; undefined, for Node's own, when it needs no proxy and no certificates. */
  readonly agentFor = (url: URL): HttpAgent | undefined => {
    const { origin } = url;
    if (!this.#agents.has(origin)) {
      this.#agents.set(origin, this.#needsOwnAgent(url) ? this.#newAgent(url, { keepAlive: true }) : undefined);
    }
    return this.#agents.get(origin);
  };

  stop(): void {
    this.#certificates?.stop();
    for (const agent of this.#agents.values()) agent?.destroy();
  }

  #needsOwnAgent(url: URL): boolean {
    return this.#proxies.for(url) !== undefined || (url.protocol === 'https:' && this.#certificates !== undefined);
  }

  #newAgent(url: URL, options: AgentOptions): HttpAgent {
    const proxy = this.#proxies.for(url);
    if (url.protocol === 'https:') return new CertifiedAgent(proxy, this.#certificates, options);
    return proxy === undefined ? new HttpAgent(options) : new ForwardingAgent(proxy, options);
  }
}

/** The current content of the certificate files. */
class Certificates {
  secureContext: SecureContext;
  /** Grows when the files change. */
  version = 0;
  readonly agents = new Set<HttpsAgent>();
  readonly stop: () => void;

  constructor(files: TlsFiles, log: Logger | undefined) {
    const material = readTlsFiles(files);
    this.secureContext = createSecureContext(material);
    const use = (renewed: TlsMaterial) => {
      this.secureContext = createSecureContext(renewed);
      this.version += 1;
      for (const { freeSockets } of this.agents) {
        for (const socket of Object.values(freeSockets).flat()) socket?.destroy();
      }
    };
    this.stop = log ? followTlsFiles(files, material, log, use) : () => {};
  }
}

/**
 * Connects through a proxy, or with certificates that may be renewed, or both. After a renewal, earlier connections carry
 * no new request; requests in flight on them finish undisturbed.
 */
class CertifiedAgent extends HttpsAgent {
  /** Which certificates a connection was made with. */
  readonly #versions = new WeakMap<Duplex, number>();

  constructor(
    private readonly proxy: URL | undefined,
    private readonly certificates: Certificates | undefined,
    options: AgentOptions,
  ) {
    super(options);
    certificates?.agents.add(this);
  }

  /** Also the key of resumable TLS sessions: a session made with other certificates must not be resumed. */
  override getName(options?: RequestOptions): string {
    return `${super.getName(options)}:${this.certificates?.version}`;
  }

  override createConnection(options: RequestOptions, whenOpen?: WhenOpen): Duplex | undefined {
    const connect = (socket?: Duplex) => {
      const { secureContext, version = 0 } = this.certificates ?? {};
      const own = { ...options, ...(secureContext && { secureContext }), ...(socket && { socket }) };
      const secured = super.createConnection(own) as Duplex;
      this.#versions.set(secured, version);
      return secured;
    };
    if (this.proxy === undefined) return connect();
    openTunnel(this.proxy, options as Destination, (error, socket) =>
      whenOpen?.(error, (error ? undefined : connect(socket)) as Duplex),
    );
    return undefined;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const isCurrent = this.#versions.get(socket) === (this.certificates?.version ?? 0);
    return isCurrent && (super.keepSocketAlive(socket) as unknown as boolean);
  }

  override destroy(): void {
    this.certificates?.agents.delete(this);
    super.destroy();
  }
}
