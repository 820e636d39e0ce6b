// How a baseline learns what it needs, and says that it is ready.

/** `{ upstream, clientId, clientSecret, jwksUrl, issuer, audience }` */
export const options = JSON.parse(process.argv[2]);

export function listen(server) {
  server.listen(0, '127.0.0.1', () => announce(server.address().port));
}

export function announce(port) {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/graphql` })}\n`);
}
