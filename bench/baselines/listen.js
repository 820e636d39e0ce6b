/** Says where it listens as the gateway does. */
export function listen(server) {
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${JSON.stringify({ graphql: `http://127.0.0.1:${server.address().port}/graphql` })}\n`);
  });
}
