import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import { maxDirectivesRule } from '@escape.tech/graphql-armor-max-directives';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  specifiedRules,
  type ValidationContext,
  type ValidationRule,
  validate,
} from 'graphql';
import { causesOf } from '../../errors/causesOf.js';
import { maxMistakes } from '../../errors/errorBounds.js';
import { GatewayError } from '../../errors/errors.js';
import { digestOf, type Recurring } from './DocumentMemory.js';
import { fieldCounter } from './fieldCounter.js';

/** How large an operation may be; the setting of each is MAX_ and its name. */
export interface OperationLimits {
  readonly bodyBytes: number;
  readonly metadataDepth: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
  readonly mutationFields: number;
  readonly tokens: number;
  readonly representations: number;
}

/**
 * The one place that parses and validates documents, for every transport. Returns a function from a text to its document; it
 * throws GraphQLError, or AggregateError of all mistakes and exceeded limits. `memory`: documents by the digest of the text.
 */
export function documentReader(
  schema: GraphQLSchema,
  limits: OperationLimits,
  introspection: boolean,
  memory: Recurring<DocumentNode>,
) {
  const rules = [...specifiedRules, ...(introspection ? [] : [noIntrospection]), ...documentRules(limits)];
  return (query: string): DocumentNode => {
    const name = digestOf(query);
    const known = memory.get(name);
    if (known) return known;
    const document = parsed(query, limits.tokens);
    const errors = validate(schema, document, rules, { maxErrors: maxMistakes });
    if (errors.length > 0) throw new AggregateError(introspection ? errors : withoutSchema(errors));
    memory.offer(name, document);
    return document;
  };
}

/** A document exceeds one of our limits: saying so reveals nothing about the schema. */
class LimitError extends GraphQLError {}

/**
 * The errors that callers see when the schema must stay hidden: the limits that are exceeded, or else that something does not
 * fit. To say what does not fit, or where, would reveal which names exist: only the log has it.
 */
function withoutSchema(errors: readonly GraphQLError[]): readonly GraphQLError[] {
  const limits = errors.filter((error) => error instanceof LimitError);
  const [reason] = causesOf(errors);
  const hidden = new GatewayError('GRAPHQL_VALIDATION_FAILED', 'The document does not fit the schema', { reason });
  return limits.length > 0 ? limits : [hidden];
}

/** Parses a document. A syntax error gets a code that tells it from other mistakes. */
function parsed(query: string, maxTokens: number): DocumentNode {
  try {
    return parse(query, { maxTokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    const { message, source, positions } = error;
    const extensions = { code: 'GRAPHQL_PARSE_FAILED' };
    throw new GraphQLError(message, { source, positions, extensions });
  }
}

const noIntrospection: ValidationRule = (context) => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    context.reportError(new LimitError('Introspection is switched off (INTROSPECTION)', { nodes: node }));
  },
});

/**
 * Rules that bound a document; their errors name the setting. All follow fragment spreads while counting, so that a few
 * fragments that spread each other cannot stand for thousands of fields. graphql-js refuses cycles.
 */
function documentRules({ depth, aliases, directives, rootFields, mutationFields }: OperationLimits): ValidationRule[] {
  return [
    limit('MAX_DEPTH', depth, 'levels of fields', (options) =>
      maxDepthRule({ ...options, flattenFragments: true, ignoreIntrospection: true }),
    ),
    limit('MAX_ALIASES', aliases, 'aliases', (options) => maxAliasesRule({ ...options, allowList: [] })),
    limit('MAX_DIRECTIVES', directives, 'directives', maxDirectivesRule),
    limit('MAX_ROOT_FIELDS', rootFields, 'root fields', maxRootFieldsRule()),
    limit('MAX_MUTATION_FIELDS', mutationFields, 'fields in a mutation', maxRootFieldsRule(OperationTypeNode.MUTATION)),
  ];
}

/** Options of GraphQL Armor's rules. A rule that propagates a rejection throws, which looks like a bug of the gateway. */
interface RuleOptions {
  readonly n: number;
  readonly onReject: (() => void)[];
  readonly propagateOnRejection: boolean;
}

/** The part of a rule that we use: it counts an operation when the operation is entered. */
interface OperationVisitor {
  readonly OperationDefinition: { enter(operation: OperationDefinitionNode): void };
}

/** Gives a rule an error of our own: that of GraphQL Armor calls itself a syntax error and names no setting. */
function limit(
  setting: string,
  most: number,
  counted: string,
  rule: (options: RuleOptions) => (context: ValidationContext) => unknown,
): ValidationRule {
  return (context) => {
    let exceeded = false;
    const reject = () => {
      exceeded = true;
    };
    const counting = rule({ n: most, onReject: [reject], propagateOnRejection: false })(context) as OperationVisitor;
    return {
      OperationDefinition(operation) {
        exceeded = false;
        counting.OperationDefinition.enter.call(counting, operation);
        if (!exceeded) return;
        const message = `The document must have at most ${most} ${counted} (${setting})`;
        context.reportError(new LimitError(message, { nodes: operation }));
      },
    };
  };
}

/** Bounds the root fields of an operation, each counted as often as it is spread. `type`: only for such operations. */
const maxRootFieldsRule =
  (type?: OperationTypeNode) =>
  ({ n, onReject: [reject] }: RuleOptions) =>
  (context: ValidationContext): OperationVisitor => {
    const count = fieldCounter(
      (name) => context.getFragment(name),
      () => 1,
    );
    const enter = (operation: OperationDefinitionNode) => {
      if ((type ?? operation.operation) === operation.operation && count(operation) > n) reject?.();
    };
    return { OperationDefinition: { enter } };
  };
