import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import { maxDirectivesRule } from '@escape.tech/graphql-armor-max-directives';
import {
  type ASTVisitor,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import { GatewayError } from '../errors/errors.js';

/** How large an operation may be; the setting of each is MAX_ and its name. */
export interface OperationLimits {
  readonly bodyBytes: number;
  readonly metadataDepth: number;
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
  readonly tokens: number;
  readonly representations: number;
}

/**
 * Validation rules that bound a document; the error names the setting. All count through fragments, so that a few which
 * spread each other cannot stand for thousands of fields; graphql-js refuses cycles.
 */
export function documentRules({ depth, aliases, directives, rootFields }: OperationLimits): ValidationRule[] {
  return [
    limit('MAX_DEPTH', depth, 'levels of fields', (options) =>
      maxDepthRule({ ...options, flattenFragments: true, ignoreIntrospection: true }),
    ),
    limit('MAX_ALIASES', aliases, 'aliases', (options) => maxAliasesRule({ ...options, allowList: [] })),
    limit('MAX_DIRECTIVES', directives, 'directives', maxDirectivesRule),
    limit('MAX_ROOT_FIELDS', rootFields, 'root fields', maxRootFieldsRule),
  ];
}

/** Lines of a document: graphql-js counts them anew for each place it names. */
const maxLines = 10_000;

/** @throws GatewayError GRAPHQL_VALIDATION_FAILED */
export function refuseManyLines(query: string): void {
  if (query.length < maxLines || query.split(/\r\n|[\n\r]/, maxLines + 1).length <= maxLines) return;
  throw new GatewayError('GRAPHQL_VALIDATION_FAILED', `The document must have at most ${maxLines} lines`, {
    httpStatus: 400,
  });
}

interface RuleOptions {
  readonly n: number;
  readonly onReject: (() => void)[];
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
    const reject = () => {
      exceeded = true;
    };
    const counting = rule({ n: most, onReject: [reject], propagateOnRejection: false })(context);
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
function maxRootFieldsRule({ n, onReject: [reject] }: RuleOptions): (context: ValidationContext) => OperationVisitor {
  return (context) => {
    const counted = new Map<string, number>();
    const count = (selectionSet: SelectionSetNode | undefined): number =>
      selectionSet?.selections.reduce((sum, selection) => {
        if (selection.kind === Kind.FIELD) return sum + 1;
        if (selection.kind === Kind.INLINE_FRAGMENT) return sum + count(selection.selectionSet);
        return sum + countFragment(selection.name.value);
      }, 0) ?? 0;
    const countFragment = (name: string): number => {
      if (!counted.has(name)) {
        counted.set(name, 0); // within itself, a cycle adds nothing
        counted.set(name, count(context.getFragment(name)?.selectionSet));
      }
      return counted.get(name) ?? 0;
    };
    const enter = (operation: OperationDefinitionNode) => {
      if (count(operation.selectionSet) > n) reject?.();
    };
    return { OperationDefinition: { enter } };
  };
}
