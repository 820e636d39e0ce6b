import {
  type AgentOptions,
  type ClientRequest,
  type ClientRequestArgs,
  Agent as HttpAgent,
  request as httpRequest,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** A failure of the proxy, not of the destination behind it: `PROXY_HTTP_407`, `PROXY_ECONNREFUSED`, `PROXY_TIMEOUT`. */
class ProxyError extends Error {
  constructor(
    readonly code: string,
    cause?: unknown,
  ) {
    super('the proxy did not connect', { cause });
  }
}

/** Idle timeout of a proxy that is opening a tunnel, in milliseconds. */
const tunnelMs = 10_000;

export interface Destination {
  readonly host: string;
  readonly port: number | string;
}

export type WhenOpen = (error: Error | null, socket: Duplex) => void;

/** Asks `proxy` for a tunnel (RFC 9110, section 9.3.6). Calls `whenOpen` once, with the socket or a {@link ProxyError}. */
export function openTunnel(proxy: URL, destination: Destination, whenOpen: WhenOpen): void {
  const path = authorityOf(destination);
  const request = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  const headers = { host: path, ...credentialsFor(proxy) };
  const asking = request({ ...addressOf(proxy), method: 'CONNECT', path, headers, agent: false, timeout: tunnelMs });
  const fail = (error: Error) => whenOpen(error, undefined as never);
  asking.once('connect', ({ statusCode = 0 }, socket: Socket, head) => {
    socket.setTimeout(0);
    if (statusCode >= 200 && statusCode < 300) {
      if (head.length > 0) socket.unshift(head);
      return whenOpen(null, socket);
    }
    fail(new ProxyError(`PROXY_HTTP_${statusCode}`));
    socket.destroy();
  });
  asking.once('timeout', () => asking.destroy(new ProxyError('PROXY_TIMEOUT')));
  asking.once('error', (error) => fail(error instanceof ProxyError ? error : failureOf(error)));
  asking.end();
}

/** Sends `http:` requests to a proxy, which passes them on (RFC 9112, section 3.2.2). */
export class ForwardingAgent extends HttpAgent {
  constructor(
    private readonly proxy: URL,
    options: AgentOptions,
  ) {
    super(options);
  }

  /** Node's HTTP client calls this method of an agent; it is missing in the types. */
  addRequest(request: ClientRequest, options: Destination): void {
    request.path = `http://${authorityOf(options)}${request.path}`;
    for (const [name, value] of Object.entries(credentialsFor(this.proxy))) request.setHeader(name, value);
    const agent = HttpAgent.prototype as unknown as { addRequest(request: ClientRequest, options: object): void };
    agent.addRequest.call(this, request, { ...options, ...addressOf(this.proxy) });
  }

  override createConnection(options: ClientRequestArgs): Duplex {
    const isTls = this.proxy.protocol === 'https:';
    const socket = isTls ? connectTls(options as ConnectionOptions) : (super.createConnection(options) as Socket);
    const blameProxy = (error: NodeJS.ErrnoException) => {
      error.code = failureOf(error).code;
    };
    socket.once('error', blameProxy).once(isTls ? 'secureConnect' : 'connect', () => socket.off('error', blameProxy));
    return socket;
  }
}

function failureOf(cause: NodeJS.ErrnoException): ProxyError {
  return new ProxyError(`PROXY_${cause.code ?? 'FAILED'}`, cause);
}

function addressOf({ protocol, hostname, port }: URL) {
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  return { host, port: Number(port) || (isTls ? 443 : 80), servername: isTls && isIP(host) === 0 ? host : '' };
}

function authorityOf({ host, port }: Destination): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Basic credentials (RFC 7617). In the proxy's URL, user name and password are percent-encoded. */
function credentialsFor({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  return { 'proxy-authorization': `Basic ${credentials.toString('base64')}` };
}
