/** The program that sent a request, as it calls itself. */
export interface Client {
  readonly client?: string;
  readonly clientVersion?: string;
}

const maxLength = 64;

/**
 * Name and version from the headers of Apollo's clients or those of the GraphQL Foundation, or the same names in the
 * parameters of a socket; cut to 64 plain characters.
 */
export function clientOf(headers: Readonly<Record<string, unknown>>): Client {
  const client = plain(headers['apollographql-client-name'] ?? headers['graphql-client-name']);
  const clientVersion = plain(headers['apollographql-client-version'] ?? headers['graphql-client-version']);
  return { ...(client && { client }), ...(clientVersion && { clientVersion }) };
}

function plain(text: unknown): string | undefined {
  return typeof text === 'string'
    ? text
        .slice(0, 4 * maxLength)
        .replace(/[^\w .:/@+-]+/g, '')
        .slice(0, maxLength)
    : undefined;
}
