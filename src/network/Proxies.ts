import type { Config } from '../config/config.js';
import { AddressRanges, isAddressRange } from './AddressRanges.js';

const loopback = new AddressRanges(['127.0.0.0/8', '::1']);

/** Chooses the proxy for a call from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, by the rules of curl. */
export class Proxies {
  readonly #byProtocol: Readonly<Record<string, URL | undefined>>;
  readonly #names: readonly string[];
  readonly #ranges: AddressRanges;

  constructor({ httpsProxy, httpProxy, noProxy }: Config['proxies']) {
    const urlOf = (secret: typeof httpProxy) => secret && new URL(secret.reveal());
    this.#byProtocol = { 'https:': urlOf(httpsProxy), 'http:': urlOf(httpProxy) };
    this.#ranges = new AddressRanges(noProxy.filter(isAddressRange));
    this.#names = noProxy.filter((entry) => !isAddressRange(entry)).map((name) => trimDots(name.toLowerCase()));
  }

  /** The proxy for a URL; undefined for a direct connection, which loopback addresses always get. */
  for({ protocol, hostname }: URL): URL | undefined {
    const proxy = this.#byProtocol[protocol];
    if (proxy === undefined) return undefined;
    const host = trimDots(hostname.replace(/^\[|\]$/g, ''));
    const isHere = host === 'localhost' || host.endsWith('.localhost') || loopback.has(host);
    return isHere || this.#ranges.has(host) || this.#names.some((name) => covers(name, host)) ? undefined : proxy;
  }
}

/** A name covers itself and its subdomains; `*` covers every host. */
function covers(name: string, host: string): boolean {
  return name === '*' || host === name || host.endsWith(`.${name}`);
}

/** `.example.com` and `example.com.` mean the same as `example.com`. */
function trimDots(name: string): string {
  return name.replace(/^\.|\.$/g, '');
}
