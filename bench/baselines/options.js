// The options of every baseline, and the line by which it says that it is ready.

import { parseArgs } from 'node:util';

/** Reads `--upstream`, `--client-id` and so on, or UPSTREAM, CLIENT_ID and so on from the environment. */
export function readOptions() {
  const names = ['upstream', 'client-id', 'client-secret', 'jwks-url', 'issuer', 'audience'];
  const { values } = parseArgs({
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      port: { type: 'string', default: '0' },
    },
  });
  const [upstream, clientId, clientSecret, jwksUrl, issuer, audience] = names.map((name) => {
    const value = values[name] ?? process.env[name.toUpperCase().replaceAll('-', '_')];
    if (!value) throw new Error(`--${name} is missing`);
    return value;
  });
  return {
    upstream: upstream.replace(/\/$/, ''),
    clientId,
    clientSecret,
    jwksUrl,
    issuer,
    audience,
    port: +values.port,
  };
}

/** Listens on loopback and prints `{"url":…}`; SIGTERM ends the process. */
export function listen(server, port) {
  server.listen(port, '127.0.0.1', () => announce(server.address().port));
  process.once('SIGTERM', () => process.exit(0));
}

/** Prints the line by which the parent process learns that this one is ready. */
export function announce(port) {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/graphql` })}\n`);
}
