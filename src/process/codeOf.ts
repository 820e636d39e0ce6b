/** The code of an error of Node.js, OpenSSL or a driver, such as ECONNRESET; anything else may hold an address or a secret. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : undefined;
}
