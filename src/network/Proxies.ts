import type { Config } from '../config/config.js';
import { AddressRanges } from './AddressRanges.js';

const loopback = new AddressRanges(['127.0.0.0/8', '::1']);

/** Chooses the proxy for a call from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as curl does. */
export class Proxies {
  readonly #byProtocol: Readonly<Record<string, URL | undefined>>;
  readonly #names: readonly string[];

  constructor({ httpsProxy, httpProxy, noProxy }: Config['proxies']) {
    const urlOf = (secret: typeof httpProxy) => secret && new URL(secret.reveal());
    this.#byProtocol = { 'https:': urlOf(httpsProxy), 'http:': urlOf(httpProxy) };
    this.#names = noProxy.map(plainHost);
  }

  /** The proxy for a URL; undefined for a direct connection, which loopback addresses always get. */
  for({ protocol, hostname }: URL): URL | undefined {
    const proxy = this.#byProtocol[protocol];
    if (proxy === undefined) return undefined;
    const host = plainHost(hostname.replace(/^\[|\]$/g, ''));
    const isHere = host === 'localhost' || host.endsWith('.localhost') || loopback.has(host);
    return isHere || this.#names.some((name) => covers(name, host)) ? undefined : proxy;
  }
}

/** A name covers itself and its subdomains; `*` covers every host. */
function covers(name: string, host: string): boolean {
  return name === '*' || host === name || host.endsWith(`.${name}`);
}

/** One form for all that mean the same host: `.EXAMPLE.com.` is `example.com`, and `2001:db8:0::7` is `2001:db8::7`. */
function plainHost(entry: string): string {
  const name = entry.toLowerCase().replace(/^\.|\.$/g, '');
  const asAddress = `http://[${name}]`;
  return URL.canParse(asAddress) ? new URL(asAddress).hostname.slice(1, -1) : name;
}
