/** Whether a host, as a setting or a URL writes it, is this machine alone. Names under `localhost` are (RFC 6761). */
export function isLoopback(host: string): boolean {
  return /^((.+\.)?localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}

/** Undefined for a text that is not a URL. */
export function urlOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** The host of a URL that reaches a server: for one that listens on all addresses, `localhost`; IPv6 addresses in brackets. */
export function inUrl(host: string): string {
  if (['0.0.0.0', '::'].includes(host)) return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
