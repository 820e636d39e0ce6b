const uuid = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;

/**
 * The name by which ids are compared, kept and shown: a UUID means the same in upper and lower case (RFC 9562, section 4), and
 * is named in lower case. Every other id is its own name.
 */
export function nameOfId(id: string): string {
  return id.length === 36 && uuid.test(id) ? id.toLowerCase() : id;
}
