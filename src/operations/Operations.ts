import type { ApolloServer } from '@apollo/server';
import { LRUCache } from 'lru-cache';
import { Exit } from './Exit.js';
import { createApolloServer } from './executeByApollo.js';
import { badRequest, bytesPerCharacter, type GraphQLRequest, headBytes } from './GraphQLRequest.js';
import { documentBytes, KnownOperations, keptBytes } from './KnownOperations.js';
import type {
  Answer,
  Operation,
  OperationFacts,
  OperationRecord,
  OperationsOptions,
  OperationType,
  Result,
  Transport,
} from './Operation.js';
import { type ResultStream, subscribe } from './ResultStream.js';
import { documentOf, TrustedDocuments } from './TrustedDocuments.js';

/** Bytes that a field of an answer takes while others are awaited. Measured: 870 for one that fails, the most. */
const fieldBytes = 900;
/** Fields of an operation that do not count. */
const freeFields = 12;
/** An operation that takes at most so many bytes is not counted in the places: the number of operations limits those. */
const uncountedBytes = 4096;

/** The longest request body that is kept parsed, in characters. */
const longestKept = 2048;

/**
 * The path of every operation, on any transport, once {@link Quota.admit} has let its caller in: {@link prepare} finds out
 * what is asked and whether it is valid, {@link run} performs it and makes the answer. Each operation has one {@link
 * OperationRecord}.
 */
export class Operations {
  /** Parsed queries by their body: repeated ones are not parsed again. Mutations are not kept: they may hold personal data. */
  readonly requests = new LRUCache<string, GraphQLRequest>({
    maxSize: keptBytes,
    sizeCalculation: (_, body) => bytesPerCharacter * body.length,
  });
  readonly #known: KnownOperations;
  readonly #apollo: ApolloServer;
  readonly #exit: Exit;
  /** Undefined where any document may run. */
  readonly #trusted: TrustedDocuments | undefined;

  constructor(private readonly options: OperationsOptions) {
    this.#apollo = createApolloServer(options);
    this.#known = new KnownOperations(options, this.#apollo);
    this.#exit = new Exit(options);
    const { TRUSTED_DOCUMENTS_FILE: paths } = options.config;
    this.#trusted = paths && new TrustedDocuments(paths, options);
  }

  /** @throws Error in one line when the trusted documents cannot be read */
  async start(): Promise<void> {
    await this.#trusted?.start();
    await this.#apollo.start();
  }

  stop(): Promise<void> {
    return this.#apollo.stop();
  }

  /**
   * Finds the operation that a request asks for, counts what it holds until its record ends, and checks its variables.
   * `streamAs`: the transport of a subscription, if it differs from that of other operations. @throws what {@link refuse} answers
   */
  prepare(record: OperationRecord, facts: OperationFacts, asked: GraphQLRequest, streamAs?: Transport): Operation {
    const { quota, places, contextFor } = this.options;
    const { holder } = facts.caller;
    // A router that presents its secret writes its own documents, which no list has.
    const trusted = facts.fromRouter === true ? undefined : this.#trusted;
    return quota.timed(holder, () => {
      const { text, isTrusted } = documentOf(asked, trusted);
      record.hasDocument = true; // from here on, an error without an HTTP status of its own is a mistake in the document
      const known = this.#known.find(text, asked.operationName);
      record.known = known;
      if (known.type === 'subscription') record.transport = streamAs ?? record.transport;
      refuseWrongTransport(asked.method, known.type, record.transport);
      record.values = known.valuesFrom(asked.variables);
      record.fields = known.fieldsFor(record.values);
      const ownBytes = known.isKept ? 0 : documentBytes(known.document); // a kept document is shared
      const fieldsBytes = fieldBytes * Math.max(0, record.fields - freeFields);
      const bytes = bytesPerCharacter * asked.size + headBytes(facts.request) + ownBytes + fieldsBytes;
      if (bytes > uncountedBytes) record.release = places.take('bytes', holder, bytes);
      // Checked again after `admit`: other operations of the caller that were let in with this one may have used up its share.
      quota.refuseBeyondShare(holder);
      if (known.rootFields > 1) quota.takeOtherFields(facts, known.rootFields - 1); // `admit` counted the first
      if (!isTrusted) trusted?.report(text, known.label, facts);
      if (known.isKept && known.type === 'query') this.#keep(asked);
      record.context = contextFor(facts, record.fields);
      return record as Operation;
    });
  }

  /**
   * Performs an operation: a query or a mutation synchronously where possible, a subscription as a stream of answers.
   * Throws or rejects with what {@link refuse} answers; a stream never does.
   */
  run(operation: Operation): Answer | Promise<Answer | ResultStream> {
    const { quota } = this.options;
    const { known, values, context } = operation;
    operation.way = known.way;
    if (known.way === 'events') return subscribe(operation, this.#exit, this.options);
    const leave = (result: Result) => this.#exit.leave(operation, result);
    return quota.timed(context.holder, () => {
      const result = known.run(values, context);
      if (!(result instanceof Promise)) return leave(result);
      return result.then((late) => quota.timed(context.holder, () => leave(late)));
    });
  }

  /** Refuses a request or an operation because of a thrown `error`. Returns the answer. */
  refuse(record: OperationRecord, error: unknown): Answer {
    return this.#exit.refuse(record, error);
  }

  /** Reports a connection that ends before it is authenticated. */
  turnAway(record: OperationRecord, cause: string): void {
    record.causes = [cause];
    this.options.onEnd(record);
  }

  #keep(asked: GraphQLRequest): void {
    const { body } = asked;
    if (body !== undefined && body.length <= longestKept) {
      this.requests.set(body, { ...asked, body: undefined, size: 0 });
    }
  }
}

/** @throws GatewayError for a subscription without a stream, and for a GET of anything but a query or a subscription */
function refuseWrongTransport(method: GraphQLRequest['method'], type: OperationType, transport: Transport): void {
  const lacksStream = type === 'subscription' && transport === 'http';
  if (method === 'GET' && (lacksStream || type === 'mutation')) {
    throw badRequest(`GET requests only support query operations, not ${type} operations`, 405);
  }
  if (lacksStream) {
    throw badRequest(
      'A subscription needs a stream: use a WebSocket on this path, or server-sent events on /graphql/stream',
    );
  }
}
