import {
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  getOperationAST,
  isInputObjectType,
  isNonNullType,
  isScalarType,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SourceLocation,
  typeFromAST,
  visit,
} from 'graphql';
import type { compileQuery, isCompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import type { RequestContext } from '../context.js';
import { locationIn, type Template, templateOf, variablesWith, withVariables } from './literals.js';
import { operationLabel } from './operationLabel.js';

type Variables = Readonly<Record<string, unknown>>;

/** An operation compiled to JavaScript: answers as Apollo would, without parsing, validating or interpreting anything. */
export interface Plan {
  readonly type: 'query' | 'mutation';
  /** What the operation is called in metrics, see {@link operationLabel}. */
  readonly label: string;
  /** The result is without `data` when the variables were refused, and nothing was executed. */
  readonly run: (context: RequestContext, variables: Variables) => ExecutionResult | Promise<ExecutionResult>;
  /** Where a location in an error is in the text that was sent, when that is somewhere else. */
  readonly locate?: (location: SourceLocation) => SourceLocation;
}

interface CompiledOperation extends Plan {
  readonly takes: (variables: Variables) => boolean;
}

/** What is known of an operation: accepted once, compiled, or one that always stays with Apollo. */
type Known = 'accepted' | CompiledOperation | 'stays with Apollo';

/**
 * `on`: an operation is compiled when it comes again after Apollo has accepted it, because compiling costs more than one
 * answer saves. `at-once`: already when it was accepted. `off`: never. The last two are for tests.
 */
export type PlanMode = 'on' | 'at-once' | 'off';

const maxDocuments = 1000;
/** All documents together, in characters: a compiled plan is some ten times as large as its document. */
const maxCharacters = 1_000_000;

/**
 * Plans of operations that Apollo has parsed, validated and answered: nothing that Apollo would refuse can have one. The
 * cache is keyed by the exact text and name, but for string literals where any other would do as well (see
 * {@link templateOf}), and an operation gets a plan only where the plan answers byte for byte as Apollo does (see
 * {@link isPlannable}).
 */
export class PlanCache {
  readonly #schema: GraphQLSchema;
  readonly #mode: PlanMode;
  #compiler: Compiler | undefined;
  /** By document, then by `operationName`. */
  readonly #texts = new KnownDocuments();
  /** The same of documents without their literals. */
  readonly #templates = new KnownDocuments();

  constructor(schema: GraphQLSchema, mode: PlanMode = 'on') {
    this.#schema = schema;
    this.#mode = mode;
  }

  /** The plan to answer with; undefined when this request is Apollo's. */
  find(query: string, operationName: string | undefined, variables: Variables): Plan | undefined {
    const template = templateOf(query);
    const like = template && this.#compiled(this.#templates, template.text, operationName, withVariables);
    if (template !== undefined && like !== undefined) return like.takes(variables) ? bound(like, template) : undefined;
    const exact = this.#compiled(this.#texts, query, operationName);
    return exact?.takes(variables) ? exact : undefined;
  }

  /** Notes that Apollo answered an operation, so that it is valid and within all limits on documents. */
  async accept(query: string, operationName: string | undefined): Promise<void> {
    if (this.#mode === 'off') return;
    this.#compiler ??= await import('graphql-jit'); // not needed to start, and not small
    const template = templateOf(query);
    if (template !== undefined) {
      const known =
        this.#templates.get(template.text, operationName) ??
        (withVariables(this.#schema, parse(template.text)) ? 'accepted' : 'stays with Apollo');
      this.#templates.set(template.text, operationName, known);
      if (this.#mode === 'at-once') this.#compiled(this.#templates, template.text, operationName, withVariables);
      if (known !== 'stays with Apollo') return;
    }
    if (this.#texts.get(query, operationName) === undefined) this.#texts.set(query, operationName, 'accepted');
    if (this.#mode === 'at-once') this.#compiled(this.#texts, query, operationName);
  }

  /** Compiles what was accepted. */
  #compiled(
    documents: KnownDocuments,
    text: string,
    operationName: string | undefined,
    prepare?: Prepare,
  ): CompiledOperation | undefined {
    let known = documents.get(text, operationName);
    if (known === 'accepted' && this.#compiler) {
      known = compile(this.#compiler, this.#schema, text, operationName, prepare);
      documents.set(text, operationName, known);
    }
    return typeof known === 'object' ? known : undefined;
  }
}

/** The least recently used go first. */
class KnownDocuments {
  readonly #documents = new LRUCache<string, Map<string | undefined, Known>>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });

  get(text: string, operationName: string | undefined): Known | undefined {
    return this.#documents.get(text)?.get(operationName);
  }

  set(text: string, operationName: string | undefined, known: Known): void {
    const operations = this.#documents.get(text) ?? new Map<string | undefined, Known>();
    this.#documents.set(text, operations.set(operationName, known));
  }
}

function bound({ type, label, run }: CompiledOperation, template: Template): Plan {
  return {
    type,
    label,
    run: (context, variables) => run(context, variablesWith(variables, template.literals)),
    locate: (location) => locationIn(template, location),
  };
}

interface Compiler {
  readonly compileQuery: typeof compileQuery;
  readonly isCompiledQuery: typeof isCompiledQuery;
}

/** Changes a document before it is compiled; undefined when it cannot be. */
type Prepare = (schema: GraphQLSchema, document: DocumentNode) => DocumentNode | undefined;

function compile(...input: Parameters<typeof compileOrThrow>): Known {
  try {
    return compileOrThrow(...input);
  } catch {
    return 'stays with Apollo'; // which has answered it: what the compiler cannot do is no fault of the request
  }
}

function compileOrThrow(
  compiler: Compiler,
  schema: GraphQLSchema,
  text: string,
  operationName: string | undefined,
  prepare: Prepare = (_, parsed) => parsed,
): Known {
  const asSent = parse(text);
  const operation = getOperationAST(asSent, operationName);
  const takes = operation && isPlannable(asSent, operation) && variableCheck(schema, operation);
  const document = takes && prepare(schema, asSent);
  if (!takes || !document || operation.operation === 'subscription') return 'stays with Apollo';
  const compiled = compiler.compileQuery(schema, document, operationName, {
    disablingCapturingStackErrors: true,
    // Our objects hold strings, booleans and names of enum values as they are to be written.
    disableLeafSerialization: true,
  });
  if (!compiler.isCompiledQuery(compiled)) return 'stays with Apollo';
  const label = operationLabel(schema, operation);
  const type = operation.operation;
  return { type, label, takes, run: (context, variables) => compiled.query(undefined, context, variables) };
}

/**
 * Whether a plan can be trusted to answer as graphql-js does. Not with directives: the compiler keeps a condition with the
 * field, so a fragment used under two conditions would get the wrong one. Not `_entities`: a failing item shifts the ones
 * after it. Not introspection and `_service`, which are rare, and not several mutations, which have to wait for each other.
 */
function isPlannable(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): boolean {
  const [first, ...others] = selectionSet.selections;
  const isOneMutation = operation === 'mutation' && first?.kind === Kind.FIELD && others.length === 0;
  let plannable = operation === 'query' || isOneMutation;
  const refuse = () => {
    plannable = false;
    return BREAK;
  };
  visit(document, {
    Directive: refuse,
    Field: ({ name: { value: name } }) => (name.startsWith('_') && name !== '__typename' ? refuse() : undefined),
    // In the generated code it would be the prototype.
    Name: ({ value: name }) => (name === '__proto__' ? refuse() : undefined),
  });
  return plannable;
}

/**
 * A check of variables: scalars that are what they seem, with nothing to coerce, to complain about or to fill in. Input
 * objects the plan checks itself. Any other request is Apollo's. Undefined when the operation has variables of other types.
 */
function variableCheck(schema: GraphQLSchema, operation: OperationDefinitionNode) {
  const checks: ((variables: Variables) => boolean)[] = [];
  for (const { variable, type: typeNode, defaultValue } of operation.variableDefinitions ?? []) {
    const name = variable.name.value;
    const type = typeFromAST(schema, typeNode as never);
    const named = isNonNullType(type) ? type.ofType : type;
    const fits = isInputObjectType(named) ? isGiven : isScalarType(named) ? plainValue[named.name] : undefined;
    if (fits === undefined) return undefined;
    const isNullable = !isNonNullType(type);
    const isOptional = isNullable || defaultValue !== undefined;
    checks.push((variables) => {
      const value = variables[name];
      if (value === undefined) return isOptional && !(name in variables);
      // With a default, null may stand where an argument needs a value, which graphql-js finds out when it runs.
      return value === null ? isNullable && defaultValue === undefined : fits(value);
    });
  }
  return (variables: Variables) => checks.every((check) => check(variables));
}

const isGiven = () => true;

const plainValue: Readonly<Record<string, (value: unknown) => boolean>> = {
  ID: (value) => typeof value === 'string',
  String: (value) => typeof value === 'string',
  Boolean: (value) => typeof value === 'boolean',
  Int: (value) => typeof value === 'number' && (value | 0) === value && !Object.is(value, -0),
};
