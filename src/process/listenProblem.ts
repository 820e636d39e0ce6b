/** For operators: why a server cannot listen on the port of `setting`; undefined for an error about anything else. */
export function listenProblem(error: unknown, setting: 'PORT' | 'METRICS_PORT'): string | undefined {
  const { code, syscall = '' } = error as NodeJS.ErrnoException;
  // `getaddrinfo` fails when HOST is a name that is not found.
  if (!['listen', 'getaddrinfo'].includes(syscall)) return undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `${setting} is in use by another process: expected a free one`;
    case 'EACCES':
      return `${setting} may not be used by this user: expected a port that needs no privileges`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'HOST is not an address of this machine';
    default:
      return undefined;
  }
}
