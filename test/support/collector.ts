import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, string> }[];
  readonly status: { readonly code?: number };
}

/** A collector of OTLP/HTTP traces on loopback; of each batch it says that it rejected `rejected` spans. */
export async function startCollector({ rejected = 0 } = {}) {
  const spans: CollectedSpan[] = [];
  const requests: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { headers, url = '' } = request;
    const sent = Buffer.concat(chunks);
    const body = (headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent).toString();
    requests.push({ url, headers, body });
    response.writeHead(200, { 'content-type': headers['content-type'] ?? '' });
    // Protobuf: an empty answer is a good one; otherwise field 1, whose field 1 is the number, and 2 the text.
    if (headers['content-type'] !== 'application/json') {
      return response.end(
        rejected === 0 ? '' : Buffer.from([0x0a, 9, 0x08, rejected, 0x12, 5, ...Buffer.from('plant')]),
      );
    }
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: CollectedSpan[] }[] }[] };
    spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
    const partialSuccess = { rejectedSpans: `${rejected}`, errorMessage: 'planted text of the collector' };
    return response.end(JSON.stringify(rejected === 0 ? {} : { partialSuccess }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
