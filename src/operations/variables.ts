import {
  coerceInputValue,
  type GraphQLSchema,
  isInputType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
} from 'graphql';
import { countOf, maxMistakes, maxViolations } from '../errors/errorBounds.js';
import type { Violation } from '../errors/errors.js';
import { badRequest } from './GraphQLRequest.js';

/** Refuses variables that do not fit, by path. graphql-js would too, but quotes the values. @throws GatewayError (400) */
export function refuseMalformedVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): void {
  const violations: Violation[] = [];
  const add = (violation: Violation) => {
    violations.push(violation);
    if (violations.length > maxMistakes) throw enough;
  };
  try {
    findViolations(schema, operation, variables, add);
  } catch (reason) {
    if (reason !== enough) throw reason;
  }
  const [first] = violations;
  if (first === undefined) return;
  const others = violations.length - 1;
  const more = others > 0 ? ` (and ${countOf(others, violations.length)} more)` : '';
  throw badRequest(`Variable ${first.path} ${first.message}${more}`, 400, {
    violations: violations.slice(0, maxViolations),
  });
}

/** Thrown to end the search. */
const enough = Symbol('enough');

function findViolations(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
  add: (violation: Violation) => void,
): void {
  for (const definition of operation.variableDefinitions ?? []) {
    const name = definition.variable.name.value;
    const type = typeFromAST(schema, definition.type as never);
    if (type === undefined || !isInputType(type)) continue; // validation has refused it already
    const given = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (given === undefined) {
      if (isNonNullType(type) && definition.defaultValue === undefined) {
        add({ path: name, message: `is missing: expected ${type}` });
      }
      continue;
    }
    coerceInputValue(given, type, (path, _, error) => {
      // Only what comes from the schema is taken over: a field name that is not defined may be a value, of any form.
      const missing = /^Field "(\w+)" of required type "([\w![\]]+)" was not provided\.$/.exec(error.message);
      const unknown = /^Field [\s\S]* is not defined by type "(\w+)"/.exec(error.message);
      const message = missing
        ? `is missing its field ${missing[1]}: expected ${missing[2]}`
        : unknown
          ? `has a field that ${unknown[1]} does not define`
          : 'does not have the expected type';
      add({ path: [name, ...path].join('.'), message });
    });
  }
}
