import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import { maxDirectivesRule } from '@escape.tech/graphql-armor-max-directives';
import {
  type ASTVisitor,
  type DefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import { GatewayError } from '../errors/errors.js';

/** How large a document may be; see the settings of the same names. */
export interface DocumentLimits {
  /** MAX_DEPTH */
  readonly depth: number;
  /** MAX_ALIASES */
  readonly aliases: number;
  /** MAX_DIRECTIVES */
  readonly directives: number;
  /** MAX_ROOT_FIELDS */
  readonly rootFields: number;
  /** MAX_TOKENS */
  readonly tokens: number;
  /** MAX_REPRESENTATIONS */
  readonly representations: number;
}

/**
 * Validation rules that bound what a document may ask for, on every transport. A document past a limit is refused with
 * GRAPHQL_VALIDATION_FAILED and a message that names the limit's setting and its value.
 *
 * All are counted through fragments, so that a few fragments which spread each other cannot stand for thousands of fields;
 * a cycle counts once and is refused by graphql-js. Two more limits are not here: tokens are counted while parsing, and
 * graphql-js itself bounds the depth of introspection and the work of comparing fields that overlap.
 */
export function documentRules({ depth, aliases, directives, rootFields }: DocumentLimits): ValidationRule[] {
  return [
    limit('MAX_DEPTH', depth, 'levels of fields', (options) =>
      maxDepthRule({ ...options, flattenFragments: true, ignoreIntrospection: true }),
    ),
    limit('MAX_ALIASES', aliases, 'aliases', (options) => maxAliasesRule({ ...options, allowList: [] })),
    limit('MAX_DIRECTIVES', directives, 'directives', maxDirectivesRule),
    limit('MAX_ROOT_FIELDS', rootFields, 'root fields', maxRootFieldsRule),
  ];
}

/** Most lines of a document. One of 2,000 tokens has no use for more, and graphql-js counts them anew for each place it names. */
const maxLines = 10_000;

/** @throws GatewayError GRAPHQL_VALIDATION_FAILED */
export function refuseManyLines(query: string): void {
  if (query.length < maxLines || query.split(/\r\n|[\n\r]/, maxLines + 1).length <= maxLines) return;
  const message = `The document must have at most ${maxLines} lines`;
  throw new GatewayError('GRAPHQL_VALIDATION_FAILED', message, { httpStatus: 400 });
}

interface RuleOptions {
  readonly n: number;
  readonly onReject: ((context: ValidationContext | null, error: GraphQLError) => void)[];
  /** Whether the rule throws: that would end the validation as a bug of ours. */
  readonly propagateOnRejection: boolean;
}

/** What we need of a rule: to count an operation when it is entered. GraphQL Armor's have this shape. */
type CountingRule = (options: RuleOptions) => (context: ValidationContext) => unknown;
interface OperationVisitor {
  readonly OperationDefinition: { enter(operation: OperationDefinitionNode): void };
}

/** The rule with an error of our own: theirs calls itself a syntax error and names no setting. */
function limit(setting: string, most: number, counted: string, rule: CountingRule): ValidationRule {
  return (context) => {
    let exceeded = false;
    const counting = rule({ n: most, onReject: [() => (exceeded = true)], propagateOnRejection: false })(context);
    const { OperationDefinition: operations } = counting as OperationVisitor;
    return {
      OperationDefinition(operation) {
        exceeded = false;
        operations.enter.call(counting, operation);
        if (!exceeded) return;
        const message = `The document must have at most ${most} ${counted} (${setting})`;
        context.reportError(new GraphQLError(message, { nodes: operation }));
      },
    } satisfies ASTVisitor;
  };
}

/** Counts the fields at the root of an operation, each as often as it is spread. */
function maxRootFieldsRule({ n, onReject }: RuleOptions): (context: ValidationContext) => OperationVisitor {
  return (context) => {
    const counted = new Map<string, number>();
    const count = ({ selections }: SelectionSetNode): number =>
      selections.reduce((sum, selection) => {
        if (selection.kind === Kind.FIELD) return sum + 1;
        if (selection.kind === Kind.INLINE_FRAGMENT) return sum + count(selection.selectionSet);
        return sum + countFragment(selection.name.value);
      }, 0);
    const countFragment = (name: string): number => {
      const known = counted.get(name);
      if (known !== undefined) return known;
      counted.set(name, 0); // within itself, a cycle adds nothing
      const fragment: DefinitionNode | null | undefined = context.getFragment(name);
      const fields = fragment ? count(fragment.selectionSet) : 0;
      counted.set(name, fields);
      return fields;
    };
    return {
      OperationDefinition: {
        enter: (operation) => {
          if (count(operation.selectionSet) <= n) return;
          for (const reject of onReject) reject(context, new GraphQLError('Too many root fields'));
        },
      },
    };
  };
}
