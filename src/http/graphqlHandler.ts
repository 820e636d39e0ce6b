import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Holder } from '../admission/Places.js';
import type { GatewayError } from '../errors/errors.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { type Answer, OperationRecord } from '../operations/Operation.js';
import type { ResultStream } from '../operations/ResultStream.js';
import { endOfTurn } from '../process/pause.js';
import { type Accepted, plainJson, readAccept } from './accept.js';
import { headersOf, refuseInTurn, writeJson } from './answering.js';
import { type Edge, shuttingDown } from './edge.js';
import { HttpFacts } from './facts.js';
import type { Handler } from './HttpServer.js';
import { refuseGetsWithoutScript } from './origins.js';
import { readGraphQLRequest } from './readGraphQLRequest.js';
import { writeAsStream, writeStream } from './writeStream.js';

/**
 * `/graphql` and `/graphql/stream` over HTTP: one request, one answer, as JSON or as a stream. `/graphql/stream` answers with
 * event streams alone.
 */
export function graphqlHandler(edge: Edge, path: '/graphql' | '/graphql/stream'): Handler {
  const eventsOnly = path === '/graphql/stream';
  const { operations, quota, identify, addressOf, unread, origins } = edge;
  return async (request, response) => {
    const { json, stream } = formsFor(request, eventsOnly);
    const facts = new HttpFacts(response, addressOf(request), json ?? plainJson);
    const takesNoJson = json === undefined;
    // A client that takes no JSON gets even the answer to a query as a stream.
    const record = new OperationRecord(facts, (takesNoJson && stream) || 'http');
    let holder: Holder;
    let result: Answer | ResultStream;
    try {
      if (takesNoJson) {
        if (stream === undefined) throw notAcceptable(eventsOnly);
        origins.refuseForeignPage(request);
        refuseGetsWithoutScript(request);
      }
      const identifying = identify(request.headers);
      const identified = Object.assign(facts, identifying instanceof Promise ? await identifying : identifying);
      holder = identified.caller.holder;
      quota.admit(identified);
      // An EventSource cannot add the header that a GET must have: if it accepts only a stream, its page was checked instead.
      const asked = await readGraphQLRequest(request, holder, edge, takesNoJson);
      const operation = operations.prepare(record, identified, asked, stream);
      if (operation.known.way === 'events') admitStream(edge, request, response, holder);
      const running = operations.run(operation);
      result = running instanceof Promise ? await running : running;
    } catch (error) {
      result = operations.refuse(record, error);
    }
    if (result.kind === 'refusal') return refuseInTurn(response, quota, result, facts);
    const headers = headersOf(facts.requestId);
    if (result.kind === 'stream') return writeStream(result, response, headers, edge);
    // The answers of one turn are written in a row. A program that gets several, such as a router, is then woken once: waking
    // it takes a third of the time of a small request.
    await endOfTurn();
    if (record.transport === stream) writeAsStream(response, result, stream, headers);
    else writeJson(response, result, facts.dialect, headers);
    unread.holdAnswer(response, holder);
  };
}

/** The forms in which a client can be answered: on `/graphql/stream` events alone, and multipart only after a POST. */
function formsFor({ method, headers }: IncomingMessage, eventsOnly: boolean): Pick<Accepted, 'json' | 'stream'> {
  const { json, stream, events } = readAccept(headers.accept);
  // A GET gets a stream only if it names the type, as an EventSource does: a browser's GET for an image accepts anything.
  const named = events === 'by-name' ? 'sse' : undefined;
  if (eventsOnly) return { json: undefined, stream: method !== 'GET' && events ? 'sse' : named };
  return { json, stream: method === 'GET' ? named : stream };
}

/** @throws GatewayError when a subscription may not begin now, or not for this page, or has no place */
function admitStream(
  { streams, places, origins }: Edge,
  request: IncomingMessage,
  response: ServerResponse,
  holder: Holder,
): void {
  origins.refuseForeignPage(request);
  // A stream that began now would end at once, and look complete.
  if (streams.draining) throw shuttingDown;
  // A pipelined response has no socket yet, and Node.js would not tell it when the connection closes.
  if (response.socket === null) throw badRequest('A stream must be the only request on its connection', 400);
  response.once('close', places.take('streams', holder));
}

function notAcceptable(eventsOnly: boolean): GatewayError {
  const types = eventsOnly ? 'be text/event-stream' : 'allow application/graphql-response+json or application/json';
  return badRequest(`The Accept header must ${types}`, 406);
}
