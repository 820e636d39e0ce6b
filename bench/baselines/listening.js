// How a baseline says that it is ready: as the gateway does.

export function listen(server) {
  server.listen(0, '127.0.0.1', () => announce(server.address().port));
}

export function announce(port) {
  process.stdout.write(`${JSON.stringify({ graphql: `http://127.0.0.1:${port}/graphql` })}\n`);
}
