import { badRequest } from '../operations/GraphQLRequest.js';
import { type Answer, OperationRecord } from '../operations/Operation.js';
import type { ResultStream } from '../operations/ResultStream.js';
import { endOfTurn } from '../process/pause.js';
import { type Accepted, plainJson, readAccept, type StreamTransport } from './accept.js';
import { refuseInTurn, writeJson } from './answering.js';
import { type Edge, shuttingDown } from './edge.js';
import { HttpFacts, whenOver } from './facts.js';
import type { Handler } from './HttpServer.js';
import { readGraphQLRequest } from './readGraphQLRequest.js';
import { writeStream } from './writeStream.js';

const notAcceptable = 'The Accept header must allow application/graphql-response+json or application/json';

/**
 * `/graphql` and `/graphql/stream` over HTTP: one request, one answer, as JSON or as a stream. `always`: what clients accept,
 * whatever they say.
 */
export function graphqlHandler(edge: Edge, always?: Accepted): Handler {
  const { operations, quota, places, authenticator, addressOf, unread, draining } = edge;
  return async (request, response) => {
    const { json, stream } = always ?? readAccept(request.headers.accept);
    const facts = new HttpFacts(response, addressOf(request), json ?? plainJson);
    // A client that takes no JSON gets even the answer to a query as a stream.
    const transport = json === undefined ? stream : 'http';
    const record = new OperationRecord(facts, transport ?? 'http');
    let result: Answer | ResultStream;
    try {
      if (transport === undefined) throw badRequest(notAcceptable, 406);
      const identifying = authenticator.identify(request.headers);
      const identified = Object.assign(facts, identifying instanceof Promise ? await identifying : identifying);
      const { holder } = identified.caller;
      quota.admit(identified);
      result = await readGraphQLRequest(request, holder, edge, (asked) => {
        const operation = operations.prepare(record, identified, asked, stream);
        if (operation.known.way === 'events') {
          if (draining.aborted) throw shuttingDown; // a stream that began now would end at once, and look complete
          whenOver(response, places.take('streams', holder));
        }
        return operations.run(operation);
      });
    } catch (error) {
      result = operations.refuse(record, error);
    }
    if (result.kind === 'refusal') return refuseInTurn(facts, quota, result);
    if (result.kind === 'stream' || record.transport === stream) {
      return writeStream(result, stream as StreamTransport, facts, edge);
    }
    // The answers of one turn are written in a row. A program that gets several, such as a router, is then woken once: waking
    // it takes a third of the time of a small request.
    await endOfTurn();
    result.release?.();
    writeJson(facts, result);
    unread.holdAnswer(response, facts.caller?.holder);
  };
}
