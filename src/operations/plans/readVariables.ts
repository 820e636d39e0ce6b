import {
  type GraphQLInputType,
  type GraphQLSchema,
  getNullableType,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
} from 'graphql';
import { NotPlannable, type Variables } from './Plan.js';

/**
 * Reads the variables of an operation: undefined unless each is of the type it should have, without a number for an id or a
 * null where a default was meant, because for such cases there are rules upon rules.
 */
export function variableReader(
  schema: GraphQLSchema,
  definitions: readonly VariableDefinitionNode[],
): (given: Variables) => Variables | undefined {
  const readers = definitions.map(({ variable, type: typeNode, defaultValue }) => {
    const type = typeFromAST(schema, typeNode as never) as GraphQLInputType | undefined;
    if (!type || !isInputType(type)) throw new NotPlannable();
    const isNullable = !isNonNullType(type);
    const hasDefault = defaultValue !== undefined;
    return {
      name: variable.name.value,
      mayBeAbsent: isNullable || hasDefault,
      mayBeNull: isNullable && !hasDefault,
      hasDefault,
      default: defaultValue && valueFromAST(defaultValue, type),
      read: inputReader(getNullableType(type)),
      isPlain: isLeafType(getNullableType(type)) && (getNullableType(type) as { name: string }).name in plainly,
    };
  });
  const areAsGiven = readers.every(({ isPlain, hasDefault }) => isPlain && !hasDefault);
  return (given) => {
    const values: Record<string, unknown> = areAsGiven ? given : {};
    for (const { name, mayBeAbsent, mayBeNull, hasDefault, default: otherwise, read } of readers) {
      if (!Object.hasOwn(given, name)) {
        if (!mayBeAbsent) return undefined;
        if (hasDefault) values[name] = otherwise;
        continue;
      }
      const value = given[name];
      if (value === null && !mayBeNull) return undefined;
      const input = value === null ? null : read(value);
      if (input === undefined) return undefined;
      if (!areAsGiven) values[name] = input;
    }
    return values;
  };
}

/** From a value that is not null to the input it stands for; undefined when it is not plainly right. */
type InputReader = (value: unknown) => unknown;

function inputReader(type: GraphQLInputType): InputReader {
  if (isListType(type)) {
    const readItem = nullableReader(type.ofType as GraphQLInputType);
    return (value) => {
      if (!Array.isArray(value)) return undefined;
      const items = value.map(readItem);
      return items.includes(undefined) ? undefined : items;
    };
  }
  if (isInputObjectType(type)) {
    if (type.isOneOf) throw new NotPlannable();
    const fields = Object.values(type.getFields());
    const readers = fields.map((field) => ({ ...field, read: nullableReader(field.type) }));
    return (value) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      const input: Record<string, unknown> = {};
      let found = 0;
      for (const { name, type: fieldType, defaultValue, read } of readers) {
        if (!Object.hasOwn(value, name)) {
          if (defaultValue !== undefined) input[name] = defaultValue;
          else if (isNonNullType(fieldType)) return undefined;
          continue;
        }
        found += 1;
        input[name] = read((value as Record<string, unknown>)[name]);
        if (input[name] === undefined) return undefined;
      }
      return found === Object.keys(value).length ? input : undefined;
    };
  }
  const leaf = getNullableType(type);
  if (!isLeafType(leaf)) throw new NotPlannable();
  const isRight = plainly[leaf.name];
  if (isRight) return (value) => (isRight(value) ? value : undefined);
  return (value) => {
    try {
      return leaf.parseValue(value) ?? undefined;
    } catch {
      return undefined;
    }
  };
}

function nullableReader(type: GraphQLInputType): InputReader {
  const read = inputReader(getNullableType(type));
  const isNullable = !isNonNullType(type);
  return (value) => (value === null ? (isNullable ? null : undefined) : read(value));
}

const plainly: Readonly<Record<string, (value: unknown) => boolean>> = {
  ID: (value) => typeof value === 'string',
  String: (value) => typeof value === 'string',
  Boolean: (value) => typeof value === 'boolean',
  Int: (value) => typeof value === 'number' && (value | 0) === value && !Object.is(value, -0),
};
