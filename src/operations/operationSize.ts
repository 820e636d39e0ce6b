import { collectFields } from '@graphql-tools/utils';
import {
  type DocumentNode,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  valueFromASTUntyped,
} from 'graphql';
import { fieldCounter } from './documents/fieldCounter.js';
import { badRequest, type Variables } from './GraphQLRequest.js';

/** Most fields of one operation: tens of milliseconds of work. Fields of `_entities` count once for each representation. */
const maxFields = 20_000;

/** The root fields of an operation, grouped by response key. Validation has found the fields of one key to be the same. */
export interface RootFields {
  readonly byKey: readonly (readonly FieldNode[])[];
  /** Counts the fields to answer, each as often as its fragment is spread. */
  readonly fieldsWith: (representationsIn: (field: FieldNode) => number) => number;
}

export function rootFieldsOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): RootFields {
  const fragments = Object.fromEntries(
    document.definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])),
  );
  const root = schema.getRootType(operation.operation) as GraphQLObjectType;
  const { fields } = collectFields(schema, fragments, variables, root, operation.selectionSet);
  const byKey = [...fields.values()];
  const count = fieldCounter(
    (name) => fragments[name],
    (field, within) => 1 + within(field),
  );
  const sizes = byKey.map((same) => ({ first: same[0], within: same.reduce((sum, field) => sum + count(field), 0) }));
  const fieldsWith: RootFields['fieldsWith'] = (representationsIn) =>
    sizes.reduce((sum, { first, within }) => sum + 1 + within * (isEntities(first) ? representationsIn(first) : 1), 0);
  return { byKey, fieldsWith };
}

/** Whether an operation of so many fields may run. */
export const mayAnswer = (fields: number): boolean => fields <= maxFields;

/**
 * Refuses more than `most` representations in all `_entities` of an operation together, and more fields than one answer may
 * have. Returns the number of fields. @throws GatewayError (422)
 */
export function refuseTooMuch({ byKey, fieldsWith }: RootFields, variables: Variables, most: number): number {
  const representationsIn = ({ arguments: [given] = [] }: FieldNode): number => {
    const value = given && valueFromASTUntyped(given.value, variables);
    return Array.isArray(value) ? value.length : 1;
  };
  const entities = byKey.flatMap(([first]) => (isEntities(first) ? [first] : []));
  if (entities.reduce((sum, field) => sum + representationsIn(field), 0) > most) {
    const message = `must have at most ${most} items in the whole document (MAX_REPRESENTATIONS)`;
    throw badRequest(`representations ${message}`, 422, { violations: [{ path: 'representations', message }] });
  }
  const fields = fieldsWith(representationsIn);
  if (mayAnswer(fields)) return fields;
  throw badRequest(`The operation must select at most ${maxFields} fields, counted for each representation`, 422);
}

function isEntities(field: FieldNode | undefined): field is FieldNode {
  return field?.name.value === '_entities';
}
