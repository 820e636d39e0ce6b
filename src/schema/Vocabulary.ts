import 'reflect-metadata';
import {
  type EnumValueNode,
  type FloatValueNode,
  GraphQLError,
  GraphQLScalarType,
  type IntValueNode,
  Kind,
  visit,
} from 'graphql';
import { GraphQLJSONObject } from 'graphql-scalars';
import { Directive, Field, registerEnumType } from 'type-graphql';
import { isLostInteger } from '../process/json.js';
import type { ProviderEntry } from './Provider.js';

const { parseLiteral, ...config } = GraphQLJSONObject.toConfig();

/**
 * graphql-scalars' JSONObject, but as in `parseJson` an integer literal that a double cannot hold becomes an infinity, and a word
 * without quotation marks is refused: it would be left out.
 */
export const JSONObject = new GraphQLScalarType({
  ...config,
  parseLiteral: (node, variables) =>
    parseLiteral(visit(node, { IntValue: withInfinity, FloatValue: withInfinity, EnumValue: refuse }), variables),
});

function withInfinity<Node extends IntValueNode | FloatValueNode>(node: Node): Node | undefined {
  return isLostInteger(node.value) ? { ...node, value: '1e999' } : undefined;
}

function refuse(word: EnumValueNode): never {
  // As a name, because an error about a value names its member, and the members of JSON are the caller's.
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

/** The kinds of values that the service may extend; also a label of metrics. */
export type ValueKind = 'provider' | 'taxpayer-status' | 'job-status';

/** A class of schema objects, each of which shows what a datasource found. */
type ShownType<View, Shown> = new (view: View, vocabulary: Vocabulary) => Shown;

/** Most unknown values remembered one by one, so that the service cannot fill our memory. */
const maxUnknown = 100;

/** Translates what the datasources found into the words of the schema. */
export class Vocabulary {
  readonly #providers: Readonly<Record<string, string>>;
  readonly #unknown = new Set<string>();
  readonly #shown = new WeakMap<object, unknown>();

  /** `onUnknown` is called once for each value that the schema has no name for. */
  constructor(
    providers: readonly ProviderEntry[],
    private readonly onUnknown: (kind: ValueKind, value: string) => void,
  ) {
    this.#providers = Object.fromEntries(providers.map(({ value, name }) => [value, name]));
  }

  /** Converts a view to its schema object, once per view. Returns a promise only for a promise. */
  show<View extends object, Shown>(type: ShownType<View, Shown>, view: View | Promise<View>): Shown | Promise<Shown> {
    if (view instanceof Promise) return view.then((ready) => this.show(type, ready));
    const known = this.#shown.get(view);
    if (known !== undefined) return known as Shown;
    const shown = new type(view, this);
    this.#shown.set(view, shown);
    return shown;
  }

  provider(value: string): string {
    return this.nameOf('provider', this.#providers, value);
  }

  /** The schema's name for a value of the service; UNRECOGNIZED when `names` has none. */
  nameOf<Name extends string>(kind: ValueKind, names: Readonly<Record<string, Name>>, value: string) {
    return Object.hasOwn(names, value) ? (names[value] as Name) : this.#note(kind, value);
  }

  #note(kind: ValueKind, value: string): 'UNRECOGNIZED' {
    const seen = `${kind} ${value}`;
    if (!this.#unknown.has(seen) && this.#unknown.size < maxUnknown) {
      this.#unknown.add(seen);
      this.onUnknown(kind, value);
    }
    return 'UNRECOGNIZED';
  }
}
