import { hash } from 'node:crypto';
import type { ApolloServer } from '@apollo/server';
import {
  createSourceEventStream,
  type DocumentNode,
  execute,
  type FieldNode,
  type GraphQLError,
  getOperationAST,
  type IntValueNode,
  Kind,
  type OperationDefinitionNode,
  parse,
  type StringValueNode,
  specifiedRules,
  validate,
  valueFromASTUntyped,
  visit,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { badInput, GatewayError } from '../errors/errors.js';
import { causesOf } from '../errors/maskError.js';
import { BoundedCache, heapPart, ownText } from '../process/memory.js';
import { executeByApollo } from './executeByApollo.js';
import { badRequest, type Variables } from './GraphQLRequest.js';
import type { OperationContext, OperationsOptions } from './Operation.js';
import { planOf, type Run } from './plans/planOf.js';
import { refuseExcess, rootFieldsOf, sizeIn } from './size.js';
import { variableReader } from './variables.js';

/** An operation of a document that is valid and within all limits. */
export type KnownOperation = ReturnType<typeof operationOf>;

/** A valid document, and those of its operations that were asked for. */
interface KnownDocument {
  readonly document: DocumentNode;
  readonly sizeOf: ReturnType<typeof sizeIn>;
  readonly operations: Map<OperationDefinitionNode, KnownOperation>;
}

/** Most fields of one operation: tens of milliseconds of work. Fields of `_entities` count once for each representation. */
const maxFields = 5_000;
/** Most digests of texts that came once, of about 150 bytes each. */
const maxSeen = 4096;

/** Errors name places only in a document of at most this many characters, and of fewer than this many lines. */
const longestWithPlaces = 20_000;
const tooManyLines = 201;

/** Most mistakes of a document that are looked for and reported. */
const maxMistakes = 5;

/** Bytes of a kept document besides its text, AST and plans. */
const entryBytes = 500;
/** Bytes of a character in a text that is not all Latin-1; in others a character takes one. */
const characterBytes = 2;
/** A token with its share of the AST nodes. Measured: 250 to 525, the most where every token is a field. */
const tokenBytes = 525;
/** A step of a plan, which has one for each field. Measured: 740 to 990. */
const stepBytes = 1000;

/** Most bytes that are kept of documents, and as many of requests: a thirty-second of the heap, at least 2 MiB. */
export const keptBytes = Math.max(2_097_152, heapPart(32));

/**
 * The operations that callers ask for, by their text: the one place that parses and validates documents, for every transport.
 * A document is kept, and gets plans, when its text comes a second time, unless it is too large. Of a text that came once only a
 * digest is kept, so that a flood of different documents does not push out those in use.
 */
export class KnownOperations {
  readonly #kept = new LRUCache<string, KnownDocument>({ maxSize: keptBytes, sizeCalculation: bytesOf });
  readonly #seen = new BoundedCache<true>({ max: maxSeen });

  constructor(
    private readonly options: OperationsOptions,
    private readonly apollo: ApolloServer,
  ) {}

  /** @throws GraphQLError, GatewayError, or AggregateError of all mistakes */
  find(text: string, operationName: string | undefined): KnownOperation {
    const known = this.#kept.get(text) ?? this.#read(text);
    const node = getOperationAST(known.document, operationName);
    if (!node) {
      const missing = 'The document has several operations: set operationName';
      const wrong = 'operationName must name one of the operations in the document';
      throw badRequest(operationName ? wrong : missing);
    }
    let operation = known.operations.get(node);
    if (operation === undefined) {
      operation = operationOf(this.options, this.apollo, known, node, this.#kept.has(text));
      known.operations.set(node, operation);
    }
    return operation;
  }

  /** Parses and validates a document, and keeps it if its text has come before. @throws as {@link find} */
  #read(text: string): KnownDocument {
    const { schema, config } = this.options;
    // For each place that an error names graphql-js counts the lines again, and there may be thousands of places.
    const noLocation =
      text.length > longestWithPlaces || text.split(/\r\n|[\n\r]/, tooManyLines).length === tooManyLines;
    const document = parse(text, { maxTokens: config.MAX_TOKENS, noLocation });
    const sizeOf = sizeIn(document);
    for (const one of document.definitions) {
      if (one.kind === Kind.OPERATION_DEFINITION) refuseExcess(sizeOf(one), one, config);
    }
    visit(document, { StringValue: ownValue, IntValue: ownValue });
    const errors = validate(schema, document, specifiedRules, { maxErrors: maxMistakes });
    if (errors.length > 0) throw config.INTROSPECTION ? new AggregateError(errors) : withoutSchema(errors);
    // Texts that differ only in lone surrogates have one digest, which does no harm: the second is kept at its first use.
    const digest = hash('sha256', text);
    const known = { document, sizeOf, operations: new Map() };
    if (this.#seen.get(digest)) this.#kept.set(text, known);
    else this.#seen.set(digest, true);
    return known;
  }
}

function operationOf(
  { schema, config }: OperationsOptions,
  apollo: ApolloServer,
  { document, sizeOf }: KnownDocument,
  operation: OperationDefinitionNode,
  isKept: boolean,
) {
  const type = operation.operation;
  const { fields, rootFields } = sizeOf(operation);
  const roots = rootFieldsOf(document, operation);
  if (!config.INTROSPECTION && roots.some(isIntrospection)) {
    throw new GatewayError('GRAPHQL_VALIDATION_FAILED', 'Introspection is switched off (INTROSPECTION)');
  }
  const entities = roots.filter(({ name }) => name.value === '_entities');
  const valuesFrom = variableReader(schema, operation.variableDefinitions, config.INTROSPECTION);
  const plan = isKept ? planOf(schema, document, operation) : undefined;
  const way: 'plan' | 'apollo' = plan ? 'plan' : 'apollo';
  const operationName = operation.name?.value;
  const withoutPlan: Run = (variableValues, contextValue, rootValue) => {
    const args = { schema, document, operationName, variableValues, contextValue, rootValue };
    return type === 'subscription' ? execute(args) : executeByApollo(apollo, args);
  };
  const fieldsFor = (values: Variables): number => {
    let count = fields;
    let representations = 0;
    for (const field of entities) {
      const length = representationsIn(field, values);
      representations += length;
      count += (length - 1) * sizeOf(field).fields;
    }
    if (representations > config.MAX_REPRESENTATIONS) {
      const message = `must have at most ${config.MAX_REPRESENTATIONS} items in the whole document (MAX_REPRESENTATIONS)`;
      throw badInput('representations', message);
    }
    if (count > maxFields) {
      const message = `The operation must select at most ${maxFields} fields, counted for each representation`;
      throw new GatewayError('GRAPHQL_VALIDATION_FAILED', message);
    }
    return count;
  };
  return {
    /** See {@link operationLabel}. */
    label: operationLabel(roots),
    type,
    /** See {@link nameToLog}. */
    name: nameToLog(operationName),
    rootFields,
    /** Whether the text of the document came before, so that the document is kept. */
    isKept,
    document,
    /** Subscribes to the events of a subscription; a result when that fails. */
    eventsFor: (variableValues: Variables, contextValue: OperationContext) =>
      createSourceEventStream({ schema, document, operationName, variableValues, contextValue }),
    /** What executes it; `events`: `run` does, once for each event. */
    way: type === 'subscription' ? ('events' as const) : way,
    /** Checks the variables that a caller gave; returns them with defaults. @throws GatewayError */
    valuesFrom,
    /** How many fields to answer; those of `_entities` count once for each representation. @throws GatewayError when too many */
    fieldsFor,
    run: plan ?? withoutPlan,
  };
}

/** A client's name of an operation, shortened; undefined for one with four digits in a row, which may belong to an id. */
function nameToLog(name: string | undefined): string | undefined {
  return name === undefined || /\d{4}/.test(name) ? undefined : ownText(name.slice(0, 64));
}

/** About how many bytes a parsed document takes. */
export function documentBytes({ tokenCount = 0 }: DocumentNode): number {
  return tokenBytes * tokenCount;
}

/** About how many bytes a document with its text and the plans of its operations takes. */
function bytesOf({ document, sizeOf }: KnownDocument, text: string): number {
  let bytes = entryBytes + characterBytes * text.length + documentBytes(document);
  for (const one of document.definitions) {
    if (one.kind === Kind.OPERATION_DEFINITION) bytes += stepBytes * sizeOf(one).fields;
  }
  return bytes;
}

function representationsIn(field: FieldNode, values: Variables): number {
  const given = field.arguments?.[0]; // the only argument of `_entities`
  const value = given && valueFromASTUntyped(given.value, values);
  return Array.isArray(value) ? value.length : 1;
}

/** Gives a value a text of its own: it may be an id that is kept for longer than the document. */
function ownValue(node: IntValueNode | StringValueNode): void {
  Object.assign(node, { value: ownText(node.value) });
}

const isIntrospection = ({ name }: FieldNode): boolean => ['__schema', '__type'].includes(name.value);

/**
 * The error that callers see where the schema is hidden. It does not say what is wrong: that would reveal which names exist.
 */
function withoutSchema(errors: readonly GraphQLError[]): GatewayError {
  const [reason] = causesOf(errors);
  return new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document does not fit the schema', { reason });
}

/**
 * The name of an operation in metrics and traces, never the name a client gave: its root field as the schema spells it, or
 * `several`. Of several fields, one that waits (`waitSeconds`) gives the name, because the operation is slow on purpose.
 */
function operationLabel(roots: readonly FieldNode[]): string {
  const [name = '', ...more] = new Set(roots.map((root) => root.name.value));
  if (more.length > 0) return roots.find(isLongPoll)?.name.value ?? 'several';
  return name.startsWith('__') ? 'introspection' : name;
}

function isLongPoll({ arguments: given }: FieldNode): boolean {
  return given?.some(({ name }) => name.value === 'waitSeconds') ?? false;
}
