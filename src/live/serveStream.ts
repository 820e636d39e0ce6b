import type { IncomingMessage, ServerResponse } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { GatewayError } from '../errors/errors.js';
import { type ReadOptions, readGraphQLRequest } from '../http/graphqlRequest.js';
import type { LiveTransport } from '../operations/LiveOperations.js';
import { HttpStream, type StreamFormat } from './HttpStream.js';
import { admitStream, type LiveEndpointOptions } from './liveRequest.js';
import { pipeResults } from './pipeResults.js';

export interface StreamedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly format: StreamFormat;
  readonly transport: LiveTransport;
  readonly read?: ReadOptions;
}

/** Answers one operation with a stream of its own. A client that leaves before it is open costs nothing more. */
export async function serveStream(
  { request, response, requestId, format, transport, read }: StreamedRequest,
  options: LiveEndpointOptions,
): Promise<void> {
  const { operations, requestLimits, ledger } = options;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const identity = await admitStream(request, options);
  if (gone.signal.aborted) return; // nothing would be read of its body
  const holder = holderOf(identity.caller);
  const account = { ledger, holder };
  const { method, ...parameters } = await readGraphQLRequest(request, requestLimits, { ...read, account });
  const operation = await operations.prepare(parameters, { ...identity, requestId, signal: gone.signal }, transport);
  if (gone.signal.aborted || request.socket.destroyed) return;
  // Its turn has not come, and Node.js would not say when the connection closes before it does.
  if (response.socket === null) {
    throw new GatewayError('BAD_USER_INPUT', 'A stream must be the only request on its connection', {
      httpStatus: 400,
    });
  }
  if (method === 'GET' && operation.kind === 'ready' && operation.type === 'mutation') {
    const refusal = { httpStatus: 405, allow: 'POST' };
    throw new GatewayError('BAD_USER_INPUT', 'A mutation must be sent with POST', refusal);
  }
  const stream = new HttpStream({ ...options, response, format, transport, holder });
  await pipeResults({ operations, operation, stream });
  stream.end();
}
