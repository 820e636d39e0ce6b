import 'reflect-metadata';
import { type FloatValueNode, GraphQLScalarType, type IntValueNode, visit } from 'graphql';
import { GraphQLJSONObject } from 'graphql-scalars';
import { Field, registerEnumType } from 'type-graphql';
import { isLostInteger } from '../json.js';

const { parseLiteral, ...config } = GraphQLJSONObject.toConfig();

/** The scalar of graphql-scalars, whose literals are read as `parseJson` reads JSON: an integer that a double cannot hold is an infinity. */
export const JSONObject = new GraphQLScalarType({
  ...config,
  parseLiteral: (node, variables) =>
    parseLiteral(visit(node, { IntValue: withInfinity, FloatValue: withInfinity }), variables),
});

function withInfinity<Node extends IntValueNode | FloatValueNode>(node: Node): Node | undefined {
  return isLostInteger(node.value) ? { ...node, value: '1e999' } : undefined;
}

type TypeOf = Parameters<typeof Field>[0];

/** A field that always has a value. */
export function Always(type: TypeOf, description: string): PropertyDecorator {
  return Field(type, { description });
}

/** A field that may be null or, in an input, left out. */
export function Optional(type: TypeOf, description: string): PropertyDecorator {
  return Field(type, { nullable: true, description });
}

/** A point in time that is written as JSON many times: the text is made once. */
export class Timestamp extends Date {
  #json: string | undefined;

  override toJSON(): string {
    this.#json ??= super.toJSON();
    return this.#json;
  }
}

/** Registers an enum of what the service may extend: `values` describes each by its name, and UNRECOGNIZED is for all others. */
export function openEnum<Name extends string>(
  name: string,
  description: string,
  values: Readonly<Record<Name, string>>,
) {
  const described = { ...values, UNRECOGNIZED: 'A status this gateway does not know yet.' };
  const names = Object.keys(described) as (keyof typeof described)[];
  const members = Object.fromEntries(names.map((member) => [member, member]));
  const valuesConfig = Object.fromEntries(names.map((member) => [member, { description: described[member] }]));
  registerEnumType(members, { name, description, valuesConfig });
  return members as { readonly [Member in Name | 'UNRECOGNIZED']: Member };
}
