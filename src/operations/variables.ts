import {
  coerceInputValue,
  type GraphQLInputType,
  type GraphQLSchema,
  isNonNullType,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
} from 'graphql';
import { GatewayError, type Violation } from '../errors/errors.js';
import { aboutValue, misfit } from '../errors/graphqlMessages.js';
import { isImprecise } from '../process/json.js';
import type { Variables } from './GraphQLRequest.js';

/** Most violations that are looked for and reported. */
const maxViolations = 20;

/**
 * Returns a function that coerces the variables of a valid operation as graphql-js does, with constants looked up once. Its
 * error names each value that does not fit by its path, where graphql-js would quote the value. Without `openSchema` it names
 * only the first variable: a path would reveal members of its type. The function throws GatewayError.
 */
export function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[] = [],
  openSchema: boolean,
): (given: Variables) => Variables {
  const expected = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode) as GraphQLInputType;
    const fallback = defaultValue && valueFromAST(defaultValue, type);
    return { name: variable.name.value, type, fallback };
  });
  return (given) => {
    const values: Record<string, unknown> = { ...given };
    const violations: Violation[] = [];
    const violate = (path: string, message: string) => {
      violations.push({ path, message });
      if (!openSchema || violations.length === maxViolations) throw refusalFor(violations);
    };
    for (const { name, type, fallback } of expected) {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      if (value === undefined && fallback !== undefined) values[name] = fallback;
      else if (value == null && isNonNullType(type)) {
        // The type of a variable is no secret: the caller's own document states it.
        violate(name, `${value === null ? 'must not be null' : 'is missing'}: expected ${type}`);
      } else if (value !== undefined) {
        // The type ID takes numbers, and one that has lost digits would be the id of somebody else.
        values[name] = coerceInputValue(isImprecise(value) ? NaN : value, type, (path, _, { message }) =>
          openSchema ? violate([name, ...path].join('.'), aboutValue(message)) : violate(name, misfit),
        );
      }
    }
    if (violations.length > 0) throw refusalFor(violations);
    return values;
  };
}

function refusalFor(violations: readonly Violation[]): GatewayError {
  const [first] = violations;
  return new GatewayError('BAD_USER_INPUT', `Variable ${first?.path} ${first?.message}`, { violations });
}
