import { hash } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import type { ApolloServer } from '@apollo/server';
import {
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionNode,
  specifiedRules,
  type ValidationRule,
  validate,
  valueFromASTUntyped,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { causesOf } from '../errors/causesOf.js';
import { maxMistakes } from '../errors/errorBounds.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import type { Result } from './answer.js';
import { executeByApollo } from './executeByApollo.js';
import { badRequest, type Variables } from './GraphQLRequest.js';
import type { OperationContext } from './OperationContext.js';
import { maxSteps, planOf } from './plans/planOf.js';
import { excessOf, type OperationLimits, rootFieldsOf, sizeIn } from './size.js';
import { variableReader } from './variables.js';

/** An operation of a document that is valid and within all limits. */
export interface KnownOperation {
  /** See {@link operationLabel}. */
  readonly label: string;
  readonly type: 'query' | 'mutation' | 'subscription';
  /** See {@link nameToLog}. */
  readonly name: string | undefined;
  readonly rootFields: number;
  /** Whether its text came before, so that it is kept. */
  readonly isKept: boolean;
  /** Checks what a caller gave, before anything runs. @throws GatewayError (422) */
  readonly check: (given: Variables) => Work;
}

/** What performs an operation whose variables fit. `fields`: those to answer, of `_entities` once for each representation. */
export type Work = { readonly fields: number } & (
  | {
      readonly way: 'plan' | 'apollo';
      /** Throws or rejects only for a bug. */
      readonly run: (context: OperationContext) => Result | Promise<Result>;
    }
  | { readonly way: 'events'; readonly document: DocumentNode }
);

export interface KnownOperationsOptions {
  readonly schema: GraphQLSchema;
  readonly limits: OperationLimits;
  readonly introspection: boolean;
  readonly apollo: ApolloServer<OperationContext>;
  /** Whether operations get plans: `off` is for tests. */
  readonly plans: 'on' | 'off';
}

/** A valid document and its operations, by the name that was asked for. */
interface KnownDocument {
  readonly text: string;
  readonly document: DocumentNode;
  readonly sizeOf: ReturnType<typeof sizeIn>;
  readonly isKept: boolean;
  readonly operations: Map<string | undefined, KnownOperation>;
}

/** Most fields of one operation: tens of milliseconds of work. Fields of `_entities` count once for each representation. */
const maxFields = 20_000;
/** Most digests of texts that came once, of about 150 bytes each. */
const maxSeen = 4096;

const entryBytes = 500;
/** Bytes of a character in a text that is not all Latin-1; in others a character takes one. */
const characterBytes = 2;
/** A token with its share of the AST nodes. Measured: 250 to 525, the most where every token is a field. */
const tokenBytes = 525;
/** A step of a plan. Measured: 740 to 990. */
const stepBytes = 1000;

/**
 * The operations that callers ask for, by their text: the one place that parses and validates documents, for every transport.
 * A document is kept, and gets a plan, when its text comes a second time. Of a text that came once only a digest is kept, so
 * that a flood of different documents does not push out those in use.
 */
export class KnownOperations {
  readonly #kept: LRUCache<string, KnownDocument>;
  readonly #seen = new BoundedCache<true>({ max: maxSeen });
  readonly #rules: readonly ValidationRule[];

  constructor(private readonly options: KnownOperationsOptions) {
    const maxSize = Math.max(2_097_152, Math.floor(getHeapStatistics().heap_size_limit / 32));
    this.#kept = new LRUCache({ maxSize, sizeCalculation: bytesOf });
    this.#rules = options.introspection ? specifiedRules : [...specifiedRules, noIntrospection];
  }

  /** @throws GraphQLError, GatewayError, or AggregateError of all mistakes or of all exceeded limits */
  find(text: string, operationName: string | undefined): KnownOperation {
    const known = this.#kept.get(text) ?? this.#read(text);
    let operation = known.operations.get(operationName);
    if (operation === undefined) {
      operation = this.#operationOf(known, operationName);
      known.operations.set(operationName, operation);
    }
    return operation;
  }

  #read(text: string): KnownDocument {
    const { schema, limits, introspection } = this.options;
    const document = parsed(text, limits.tokens);
    const sizeOf = sizeIn(document);
    const excess = document.definitions.flatMap((one) =>
      one.kind === Kind.OPERATION_DEFINITION ? excessOf(sizeOf(one), one, limits) : [],
    );
    if (excess.length > 0) throw new AggregateError(excess);
    const errors = validate(schema, document, this.#rules, { maxErrors: maxMistakes });
    if (errors.length > 0) throw new AggregateError(introspection ? errors : withoutSchema(errors));
    const digest = digestOf(text);
    const isKept = this.#seen.get(digest) === true;
    const known = { text, document, sizeOf, isKept, operations: new Map() };
    if (isKept) this.#kept.set(text, known);
    else this.#seen.set(digest, true);
    return known;
  }

  #operationOf(known: KnownDocument, operationName: string | undefined): KnownOperation {
    const { schema, limits, introspection, apollo, plans } = this.options;
    const { text, document, sizeOf, isKept } = known;
    const operation = getOperationAST(document, operationName);
    if (!operation) throw unknownOperation(document, operationName);
    const { fields } = sizeOf(operation);
    // Validation has found the fields of one response key to be the same.
    const byKey = new Map(rootFieldsOf(document, operation).map((field) => [(field.alias ?? field.name).value, field]));
    const entities = [...byKey.values()]
      .filter(({ name }) => name.value === '_entities')
      .map((field) => ({ field, within: sizeOf(field).fields }));
    const read = variableReader(schema, operation.variableDefinitions, introspection);
    const plan = isKept && plans === 'on' ? planOf(schema, document, operation) : undefined;
    const fieldsFor = (values: Variables): number => {
      const lengths = entities.map(({ field }) => representationsIn(field, values));
      if (lengths.reduce((sum, length) => sum + length, 0) > limits.representations) {
        const message = `must have at most ${limits.representations} items in the whole document (MAX_REPRESENTATIONS)`;
        throw badRequest(`representations ${message}`, 422, { violations: [{ path: 'representations', message }] });
      }
      return entities.reduce((sum, { within }, n) => sum + within * ((lengths[n] as number) - 1), fields);
    };
    const check: KnownOperation['check'] = (given) => {
      const values = read(given);
      const count = entities.length === 0 ? fields : fieldsFor(values);
      if (count > maxFields) {
        throw badRequest(`The operation must select at most ${maxFields} fields, counted for each representation`);
      }
      if (operation.operation === 'subscription') return { fields: count, way: 'events', document };
      if (plan?.fits(given)) return { fields: count, way: 'plan', run: (context) => plan.run(values, context) };
      const executable = { text, document, operationName, variables: given };
      return { fields: count, way: 'apollo', run: (context) => executeByApollo(apollo, executable, context) };
    };
    const label = operationLabel(schema, operation, document);
    const name = nameToLog(operation.name?.value);
    return { label, type: operation.operation, name, rootFields: byKey.size, isKept, check };
  }
}

/** A client's name of an operation, shortened; undefined for one with so many digits that it may hold an id. */
function nameToLog(name: string | undefined): string | undefined {
  return name === undefined || /\d{4}/.test(name) ? undefined : name.slice(0, 64);
}

/** SHA-256 of the text in UTF-16: in UTF-8, where all lone surrogates are the same, different texts could share a digest. */
function digestOf(text: string): string {
  return hash('sha256', Buffer.from(text, 'utf16le'), 'base64');
}

/** About how many bytes a document with its plan takes: it holds its text and every token of it. */
function bytesOf({ text, document, sizeOf }: KnownDocument): number {
  let tokens = 0;
  for (let token = document.loc?.startToken; token; token = token.next ?? undefined) tokens += 1;
  const steps = document.definitions.map((one) => (one.kind === Kind.OPERATION_DEFINITION ? sizeOf(one).fields : 0));
  const planned = Math.min(maxSteps, Math.max(...steps));
  return entryBytes + characterBytes * text.length + tokenBytes * tokens + stepBytes * planned;
}

function representationsIn({ arguments: [given] = [] }: FieldNode, values: Variables): number {
  const value = given && valueFromASTUntyped(given.value, values);
  return Array.isArray(value) ? value.length : 1;
}

function unknownOperation({ definitions }: DocumentNode, operationName: string | undefined): GatewayError {
  const count = definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length;
  if (operationName !== undefined || count === 0) {
    return badRequest('operationName must name one of the operations in the document');
  }
  return badRequest(`The document has ${count} operations: set operationName`);
}

/** Parses a document. A syntax error gets a code that tells it from other mistakes. */
function parsed(text: string, maxTokens: number): DocumentNode {
  try {
    return parse(text, { maxTokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const { message, source, positions } = error;
    throw new GraphQLError(message, { source, positions, extensions: { code: 'GRAPHQL_PARSE_FAILED' } });
  }
}

/** Says nothing of the schema, so it is told although the schema is hidden. */
class IntrospectionError extends GraphQLError {}

const noIntrospection: ValidationRule = (context) => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    context.reportError(new IntrospectionError('Introspection is switched off (INTROSPECTION)', { nodes: node }));
  },
});

/** The errors that callers see where the schema is hidden: what does not fit, or where, would reveal which names exist. */
function withoutSchema(errors: readonly GraphQLError[]): readonly GraphQLError[] {
  const told = errors.filter((error) => error instanceof IntrospectionError);
  const [reason] = causesOf(errors);
  const hidden = new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document does not fit the schema', { reason });
  return told.length > 0 ? told : [hidden];
}

/**
 * The name of an operation in metrics and traces, never the name a client gave: its root field as the schema spells it,
 * `several`, or `none`. Of several fields, one that waits (`waitSeconds`) gives the name, because the operation is slow on
 * purpose.
 */
function operationLabel(
  schema: GraphQLSchema,
  { operation, selectionSet }: OperationDefinitionNode,
  { definitions }: DocumentNode,
): string {
  const names = new Set(selectionSet.selections.map((one) => (one.kind === Kind.FIELD ? one.name.value : undefined)));
  const [name] = names;
  if (names.size !== 1 || name === undefined) {
    const fragments = definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
    const all = [selectionSet, ...fragments.map((one) => one.selectionSet)];
    return all.flatMap(({ selections }) => selections).find(isLongPoll)?.name.value ?? 'several';
  }
  if (name.startsWith('__')) return 'introspection';
  return schema.getRootType(operation)?.getFields()[name] === undefined ? 'none' : name;
}

function isLongPoll(selection: SelectionNode): selection is FieldNode {
  const given = selection.kind === Kind.FIELD ? selection.arguments : undefined;
  return given?.some(({ name }) => name.value === 'waitSeconds') ?? false;
}
