import {
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInputObjectType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
} from 'graphql';

/** The types with data of a taxpayer. */
export function taxpayerTypes(schema: GraphQLSchema): string[] {
  const types = Object.values(schema.getTypeMap()).filter(isObjectType);
  return types.filter(isTaxpayerType).map(({ name }) => name);
}

function isTaxpayerType(type: GraphQLObjectType) {
  return type.name === 'Taxpayer' || 'taxpayerId' in type.getFields();
}

/** A root field, or a path from one that reaches or passes a type with data of a taxpayer. */
export interface Path {
  /** Such as `Query.taxpayer.token`. */
  readonly name: string;
  readonly operation: 'query' | 'mutation' | 'subscription';
  /** Whether it needs access to the taxpayer. */
  readonly isOfTaxpayer: boolean;
  readonly document: string;
  /** They name this taxpayer and its job `job`. */
  readonly variables: (taxpayerId: string) => object;
  /** Scopes that the schema publishes for the fields of the path: a caller needs all of them. */
  readonly scopes: readonly string[];
}

const values: Readonly<Record<string, string>> = {
  id: '$taxpayerId',
  taxpayerId: '$taxpayerId',
  jobId: '$jobId',
  representations: '$representations',
};
/** Optional arguments that change how a field answers: each path comes with and without them. */
const options: Readonly<Record<string, string>> = { waitSeconds: '1', maxAgeSeconds: '60' };
const maxLength = 5;

/**
 * Every root field of the schema but `_service`, and every path that reaches or passes a type with data of a taxpayer, `_entities`
 * included. No field occurs twice in a path.
 *
 * @throws Error for a required argument without a value in {@link values}: add it there, so that the new path is tested
 */
export function pathsOf(schema: GraphQLSchema): Path[] {
  const roots = [
    ['query', schema.getQueryType()],
    ['mutation', schema.getMutationType()],
    ['subscription', schema.getSubscriptionType()],
  ] as const;
  return roots.flatMap(([operation, type]) =>
    type ? walk(schema, type, []).map((steps) => pathOf(operation, type, steps)) : [],
  );
}

interface Step {
  readonly field: GraphQLField<unknown, unknown>;
  readonly type: GraphQLObjectType;
  /** The field as written in a document, without its selection. */
  readonly text: string;
}

function walk(schema: GraphQLSchema, from: GraphQLObjectType, before: readonly Step[]): Step[][] {
  if (before.length === maxLength) return [];
  return Object.values(from.getFields()).flatMap((field) => {
    if (field.name === '_service' || before.some((step) => step.field === field)) return [];
    return targetsOf(schema, field).flatMap((type) =>
      spellings(field).flatMap((text) => {
        const steps = [...before, { field, type, text }];
        const arrives = isOfTaxpayer(steps) || (before.length === 0 && field.name !== '_entities') ? [steps] : [];
        return [...arrives, ...walk(schema, type, steps)];
      }),
    );
  });
}

function isOfTaxpayer(steps: readonly Step[]) {
  return steps.some(({ field, type }) => isTaxpayerType(type) || field.args.some(({ name }) => name === 'taxpayerId'));
}

function targetsOf(schema: GraphQLSchema, field: GraphQLField<unknown, unknown>): readonly GraphQLObjectType[] {
  const type = getNamedType(field.type);
  if (isUnionType(type)) return schema.getPossibleTypes(type);
  return isObjectType(type) && !type.name.startsWith('__') ? [type] : [];
}

function spellings(field: GraphQLField<unknown, unknown>) {
  const given = field.args.flatMap((argument) => {
    const { name } = argument;
    const type = getNamedType(argument.type);
    if (name in values) return `${name}: ${values[name]}`;
    if (!isRequiredArgument(argument)) return [];
    if (!isInputObjectType(type)) throw new Error(`No value for ${field.name}(${name}:)`);
    const needed = Object.values(type.getFields()).filter(isRequiredInputField);
    const unknown = needed.find((member) => !(member.name in values));
    if (unknown) throw new Error(`No value for ${type.name}.${unknown.name}`);
    return `${name}: {${needed.map((member) => `${member.name}: ${values[member.name]}`)}}`;
  });
  const optional = field.args.flatMap(({ name }) => (name in options ? [`${name}: ${options[name]}`] : []));
  return [given, ...optional.map((option) => [...given, option])].map((args) =>
    args.length > 0 ? `${field.name}(${args.join(', ')})` : field.name,
  );
}

function pathOf(operation: Path['operation'], root: GraphQLObjectType, steps: readonly Step[]): Path {
  const selection = steps.reduceRight((inner, { field, type, text }) => {
    const narrowed = isUnionType(getNamedType(field.type)) ? `... on ${type.name} { ${inner} }` : inner;
    return `${text} { ${narrowed} }`;
  }, '__typename');
  const used = [
    ['$taxpayerId', 'ID!'],
    ['$jobId', 'ID!'],
    ['$representations', '[_Any!]!'],
  ].filter(([name]) => selection.includes(`${name}`));
  const variables = used.map(([name, type]) => `${name}: ${type}`).join(', ');
  const [first, last] = [steps[0], steps.at(-1)].map((step) => step?.type.name);
  return {
    name: `${[root.name, ...steps.map(({ text }) => text)].join('.')}: ${last}`,
    operation,
    isOfTaxpayer: isOfTaxpayer(steps),
    document: `${operation}${variables && `(${variables})`} { ${selection} }`,
    variables: (taxpayerId) => {
      const common = { taxpayerId, jobId: 'job' };
      return { ...common, representations: [{ __typename: first, id: taxpayerId, ...common }] };
    },
    scopes: [...new Set(steps.flatMap(({ field }) => scopesOf(field)))],
  };
}

/** `@requiresScopes(scopes: [["a"]])`, as published to routers. */
function scopesOf(field: GraphQLField<unknown, unknown>) {
  const directive = field.astNode?.directives?.find(({ name }) => name.value === 'requiresScopes');
  const lists = directive?.arguments?.[0]?.value;
  if (lists?.kind !== 'ListValue') return [];
  return lists.values.flatMap((list) =>
    list.kind === 'ListValue' ? list.values.flatMap((item) => (item.kind === 'StringValue' ? [item.value] : [])) : [],
  );
}
