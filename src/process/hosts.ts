/** Whether a host, as a setting or a URL writes it, is this machine alone. Names under `localhost` are (RFC 6761). */
export function isLoopback(host: string): boolean {
  return /^((.+\.)?localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}

/** A host as a URL writes it: an IPv6 address in brackets. */
export function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
