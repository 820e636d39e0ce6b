/** For operators: why a server cannot listen where `setting` says; undefined for an error about anything else. */
export function listenProblem(error: unknown, setting: string): string | undefined {
  const { code, syscall = '', port } = error as NodeJS.ErrnoException & { readonly port?: number };
  // `getaddrinfo` fails when HOST is a name that is not found.
  if (!['listen', 'getaddrinfo'].includes(syscall)) return undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is already in use: stop the other process or set ${setting}`;
    case 'EACCES':
      return `Port ${port} may not be used by this user: set ${setting} to one that needs no privileges`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'HOST is not an address of this machine';
    default:
      return undefined;
  }
}
