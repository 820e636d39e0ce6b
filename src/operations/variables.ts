import {
  coerceInputValue,
  GraphQLID,
  type GraphQLInputType,
  type GraphQLSchema,
  GraphQLString,
  getNullableType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
} from 'graphql';
import { countOf, maxMistakes, maxViolations } from '../errors/errorBounds.js';
import type { Violation } from '../errors/errors.js';
import { badRequest, type Variables } from './GraphQLRequest.js';

/**
 * Coerces the variables. The error names each value that does not fit by its path, where graphql-js would quote the value.
 * Without `openSchema` it names only the first variable: a path would reveal members of its type. @throws GatewayError (422)
 */
export function coercedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  given: Variables,
  openSchema: boolean,
): Variables {
  const violations: Violation[] = [];
  let values: Variables = {};
  try {
    values = variableReader(schema, operation.variableDefinitions)(given, (path, message) => {
      const isOpen = openSchema || message.startsWith(missing);
      violations.push(isOpen ? { path, message } : { path: path.split('.', 1)[0] ?? path, message: misfit });
      if (!isOpen || violations.length > maxMistakes) throw enough;
    });
  } catch (reason) {
    if (reason !== enough) throw reason;
  }
  const [first] = violations;
  if (first === undefined) return values;
  const others = violations.length - 1;
  const more = others > 0 ? ` (and ${countOf(others, violations.length)} more)` : '';
  throw badRequest(`Variable ${first.path} ${first.message}${more}`, 422, {
    violations: violations.slice(0, maxViolations),
  });
}

/** Thrown to end the search for violations. */
const enough = Symbol('enough');

/** Returns a function that coerces the variables of a valid operation as graphql-js does, with constants looked up once. */
export function variableReader(schema: GraphQLSchema, definitions: readonly VariableDefinitionNode[] = []) {
  const expected = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType;
    const otherwise = defaultValue && valueFromAST(defaultValue, type);
    const isText = [GraphQLID, GraphQLString].some((text) => text === getNullableType(type));
    return { name: variable.name.value, type, isText, hasDefault: defaultValue !== undefined, otherwise };
  });
  return (given: Variables, onViolation: (path: string, message: string) => void): Variables => {
    let values = given; // copied only if coercion changes a value, which it never does for ids and strings
    for (const { name, type, isText, hasDefault, otherwise } of expected) {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      if (value === undefined) {
        if (hasDefault) values = { ...values, [name]: otherwise };
        else if (isNonNullType(type)) onViolation(name, `${missing} expected ${type}`);
        continue;
      }
      if (isText && typeof value === 'string') continue; // the usual case, without the cost of coercion
      const input = coerceInputValue(value, type, (path, _, { message }) =>
        onViolation([name, ...path].join('.'), withoutValues(message)),
      );
      if (input !== value) values = { ...values, [name]: input };
    }
    return values;
  };
}

/** Begins a message that names a variable's type. That is no secret: the caller's own document states it. */
const missing = 'is missing:';
const misfit = 'does not have the expected type';

/** Keeps only what comes from the schema: an undefined field name is the caller's text and may be a value, of any form. */
function withoutValues(message: string): string {
  const absent = /^Field "(\w+)" of required type "([\w![\]]+)" was not provided\.$/.exec(message);
  if (absent) return `is missing its field ${absent[1]}: expected ${absent[2]}`;
  const unknown = /^Field [\s\S]* is not defined by type "(\w+)"/.exec(message);
  return unknown ? `has a field that ${unknown[1]} does not define` : misfit;
}
