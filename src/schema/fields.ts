import 'reflect-metadata';
import { type EnumValueNode, GraphQLError, GraphQLScalarType, Kind, visit } from 'graphql';
import { GraphQLJSONObject } from 'graphql-scalars';
import { Directive, Field, registerEnumType } from 'type-graphql';

const { parseLiteral, ...config } = GraphQLJSONObject.toConfig();

/** graphql-scalars' JSONObject, which would leave out a word without quotation marks; here it is refused. */
export const JSONObject = new GraphQLScalarType({
  ...config,
  parseLiteral: (node, variables) => parseLiteral(visit(node, { EnumValue: refuse }), variables),
});

function refuse(word: EnumValueNode): never {
  // The error is about a node that is a name: one about a value would show the name of its member, which the caller chose.
  throw new GraphQLError('A word in JSON must be in quotation marks', { nodes: { ...word, kind: Kind.NAME } });
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

/** Marks types and fields of data about a person, so that a contract of a supergraph can leave them out. */
export const personalData = '@tag(name: "personal-data")';

/** A field with data about a person; it may be null or left out. */
export function Personal(type: TypeOf, description: string): PropertyDecorator {
  return (prototype, name) => {
    Directive(personalData)(prototype, name);
    Optional(type, description)(prototype, name);
  };
}

/** A text about a person; it may be null or left out. */
export function PersonalText(description: string): PropertyDecorator {
  return Personal(() => String, description);
}

/** A date that caches its JSON, because it is written many times. */
export class Timestamp extends Date {
  #json: string | undefined;

  override toJSON(): string {
    this.#json ??= super.toJSON();
    return this.#json;
  }
}

/** Registers an enum that the service may extend; UNRECOGNIZED stands for unknown values. `values`: descriptions by name. */
export function openEnum<Name extends string>(
  name: string,
  description: string,
  values: Readonly<Record<Name, string>>,
) {
  const names = Object.keys(values) as Name[];
  const members = Object.fromEntries(names.map((member) => [member, member]));
  const valuesConfig = Object.fromEntries(names.map((member) => [member, { description: values[member] }]));
  registerEnumType(members, { name, description, valuesConfig });
  return members as { readonly [Member in Name]: Member };
}

/** Describes UNRECOGNIZED among statuses. */
export const unknownStatus = 'A status that the gateway does not know. Do not take it as final.';
