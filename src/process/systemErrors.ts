/** What is configured cannot be used. The message tells operators so, one line for each problem; it never holds a value. */
export class ConfigError extends Error {}

/** The code of an error of Node.js, OpenSSL or a driver, such as ECONNRESET; anything else may hold an address or a secret. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : undefined;
}

/** For operators: why a server cannot listen where the settings say; undefined for an error about anything else. */
export function listenProblem(error: unknown, setting: string, hostSetting = 'HOST'): string | undefined {
  const { code, syscall, port } = error as NodeJS.ErrnoException & { readonly port?: number };
  const noAddress = `${hostSetting} is not an address of this machine`;
  if (syscall === 'getaddrinfo') return noAddress; // a name that is not found
  if (syscall !== 'listen') return undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is already in use: stop the other process or set ${setting}`;
    case 'EACCES':
      return `Port ${port} may not be used by this user: set ${setting} to one that needs no privileges`;
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT': // where IPv6 is off
    case 'EINVAL': // a link-local address without its interface
      return noAddress;
    default:
      return undefined;
  }
}
