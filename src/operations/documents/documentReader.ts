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
import { maxMistakes } from '../../errors/errorBounds.js';
import { LimitError, withoutSchema } from './closedSchema.js';
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
 * The one place where documents are parsed and validated, for every transport. Gives the document of a text that is valid
 * and within all limits. `memory` is by the digest of the text. @throws GraphQLError, or AggregateError of all that is wrong
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
    if (errors.length > 0) throw new AggregateError(introspection ? errors : withoutSchema(errors, document));
    memory.offer(name, document);
    return document;
  };
}

/** Parses with the code that tells a syntax error from other mistakes. */
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
 * Rules that bound a document; the error names the setting. All count through fragments, so that a few which spread each
 * other cannot stand for thousands of fields; graphql-js refuses cycles.
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

/** As GraphQL Armor's rules have them. One that propagates a rejection throws, which ends the validation as a bug of ours. */
interface RuleOptions {
  readonly n: number;
  readonly onReject: (() => void)[];
  readonly propagateOnRejection: boolean;
}

/** What we need of a rule: it counts an operation when that is entered. */
interface OperationVisitor {
  readonly OperationDefinition: { enter(operation: OperationDefinitionNode): void };
}

/** The rule with an error of our own: theirs calls itself a syntax error and names no setting. */
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

/** Counts the fields at the root of an operation, each as often as it is spread; with `type`, of operations of that type. */
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
