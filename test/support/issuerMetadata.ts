import { createServer } from 'node:http';
import { serve } from './serve.js';

/**
 * A server on loopback that answers each path with its entry in `documents`: a string as it is, a number as a status, anything
 * else as JSON. Other paths are answered 404.
 */
export async function startIssuerMetadata() {
  const documents = new Map<string, unknown>();
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    const found = documents.has(url) ? documents.get(url) : 404;
    if (typeof found === 'number') response.writeHead(found, { location: '/elsewhere' }).end('x'.repeat(100_000));
    else response.end(typeof found === 'string' ? found : JSON.stringify(found));
  });
  return {
    origin: await serve(server),
    documents,
    /** The paths of all requests so far. */
    asked,
  };
}
