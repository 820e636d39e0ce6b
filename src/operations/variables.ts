import {
  coerceInputValue,
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLSchema,
  getOperationAST,
  isNonNullType,
  type OperationDefinitionNode,
  separateOperations,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
  valueFromASTUntyped,
  visit,
} from 'graphql';
import { countOf, maxMistakes, maxViolations } from '../errors/errorBounds.js';
import type { Violation } from '../errors/errors.js';
import { badRequest, type Variables } from './GraphQLRequest.js';

/** The variables coerced. Refuses what does not fit by path: graphql-js would quote the values. @throws GatewayError (400) */
export function coercedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
): Variables {
  const violations: Violation[] = [];
  let values: Variables = {};
  try {
    values = variableReader(schema, operation.variableDefinitions)(given, (path, message) => {
      violations.push({ path, message });
      if (violations.length > maxMistakes) throw enough;
    });
  } catch (reason) {
    if (reason !== enough) throw reason;
  }
  const [first] = violations;
  if (first === undefined) return values;
  const others = violations.length - 1;
  const more = others > 0 ? ` (and ${countOf(others, violations.length)} more)` : '';
  throw badRequest(`Variable ${first.path} ${first.message}${more}`, 400, {
    violations: violations.slice(0, maxViolations),
  });
}

/** Thrown to end the search for violations. */
const enough = Symbol('enough');

/** Coerces the variables of an operation that is valid, as graphql-js does, with everything constant looked up once. */
export function variableReader(schema: GraphQLSchema, definitions: readonly VariableDefinitionNode[] = []) {
  const expected = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType;
    const otherwise = defaultValue && valueFromAST(defaultValue, type);
    return { name: variable.name.value, type, hasDefault: defaultValue !== undefined, otherwise };
  });
  return (given: Variables, onViolation: (path: string, message: string) => void): Variables => {
    const values: Record<string, unknown> = {};
    for (const { name, type, hasDefault, otherwise } of expected) {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      if (value !== undefined) {
        values[name] = coerceInputValue(value, type, (path, _, { message }) =>
          onViolation([name, ...path].join('.'), withoutValues(message)),
        );
      } else if (hasDefault) values[name] = otherwise;
      else if (isNonNullType(type)) onViolation(name, `is missing: expected ${type}`);
    }
    return values;
  };
}

/** Only what comes from the schema is taken over: a field name that is not defined may be a value, of any form. */
function withoutValues(message: string): string {
  const missing = /^Field "(\w+)" of required type "([\w![\]]+)" was not provided\.$/.exec(message);
  if (missing) return `is missing its field ${missing[1]}: expected ${missing[2]}`;
  const unknown = /^Field [\s\S]* is not defined by type "(\w+)"/.exec(message);
  return unknown ? `has a field that ${unknown[1]} does not define` : 'does not have the expected type';
}

/** Refuses more than `most` representations in all `_entities` of an operation together. @throws GatewayError (400) */
export function refuseManyRepresentations(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
  most: number,
): void {
  const isAlone = getOperationAST(document) === operation;
  const own = isAlone ? document : separateOperations(document)[operation.name?.value ?? ''];
  // Fields of the same key are one, and were found to be given the same.
  const lengths = new Map<string, number>();
  visit(own ?? document, {
    Field({ name, alias, arguments: [given] = [] }) {
      if (name.value === '_entities' && given) {
        const value = valueFromASTUntyped(given.value, variables);
        lengths.set(alias?.value ?? name.value, Array.isArray(value) ? value.length : 1);
      }
      return false; // `_entities` stands at the root only
    },
  });
  const count = [...lengths.values()].reduce((sum, length) => sum + length, 0);
  if (count <= most) return;
  const message = `must have at most ${most} items in the whole document (MAX_REPRESENTATIONS)`;
  throw badRequest(`representations ${message}`, 400, { violations: [{ path: 'representations', message }] });
}
