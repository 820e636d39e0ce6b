import {
  coerceInputValue,
  type GraphQLInputType,
  type GraphQLSchema,
  isNonNullType,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
} from 'graphql';
import type { Plan } from './Plan.js';

/** Coerces the variables of an operation that is valid. What graphql-js would refuse is left to Apollo. */
export function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
): Plan['readVariables'] {
  const expected = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType;
    return {
      name: variable.name.value,
      type,
      hasDefault: defaultValue !== undefined,
      otherwise: defaultValue && valueFromAST(defaultValue, type),
    };
  });
  return (given) => {
    const values: Record<string, unknown> = {};
    for (const { name, type, hasDefault, otherwise } of expected) {
      if (Object.hasOwn(given, name)) {
        // A null instead of a default may reach an argument that needs a value.
        if (given[name] === null && hasDefault) return undefined;
        try {
          values[name] = coerceInputValue(given[name], type);
        } catch {
          return undefined;
        }
      } else if (hasDefault) values[name] = otherwise;
      else if (isNonNullType(type)) return undefined;
    }
    return values;
  };
}
