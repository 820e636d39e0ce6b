import {
  type ASTVisitor,
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';

/**
 * Finds the deprecated fields, arguments, input fields and enum values that a document uses at any depth, as schema
 * coordinates. The values of variables are not inspected.
 */
export class Deprecations {
  readonly #isNone: boolean;
  readonly #known = new WeakMap<DocumentNode, readonly string[] | undefined>();

  constructor(private readonly schema: GraphQLSchema) {
    this.#isNone = !hasDeprecations(schema);
  }

  /** The coordinates, or undefined when there are none. Each document is searched once. */
  in(document: DocumentNode): readonly string[] | undefined {
    if (this.#isNone) return undefined;
    if (!this.#known.has(document)) this.#known.set(document, this.#find(document));
    return this.#known.get(document);
  }

  #find(document: DocumentNode): readonly string[] | undefined {
    const found = new Set<string>();
    const types = new TypeInfo(this.schema);
    const note = (used: Deprecatable | null | undefined, coordinate: string) => {
      if (used?.deprecationReason != null) found.add(coordinate);
    };
    const fieldName = () => `${types.getParentType()?.name}.${types.getFieldDef()?.name}`;
    const visitor: ASTVisitor = {
      Field: () => note(types.getFieldDef(), fieldName()),
      Argument({ name }) {
        if (types.getDirective() == null) note(types.getArgument(), `${fieldName()}(${name.value}:)`);
      },
      ObjectField({ name }) {
        const input = getNamedType(types.getParentInputType());
        if (isInputObjectType(input)) note(input.getFields()[name.value], `${input.name}.${name.value}`);
      },
      EnumValue: ({ value }) => note(types.getEnumValue(), `${getNamedType(types.getInputType())?.name}.${value}`),
    };
    visit(document, visitWithTypeInfo(types, visitor));
    return found.size === 0 ? undefined : [...found].sort();
  }
}

interface Deprecatable {
  readonly deprecationReason?: string | null | undefined;
}

function hasDeprecations(schema: GraphQLSchema): boolean {
  const isMarked = ({ deprecationReason }: Deprecatable) => deprecationReason != null;
  return Object.values(schema.getTypeMap()).some((type) => {
    if (isEnumType(type)) return type.getValues().some(isMarked);
    if (isInputObjectType(type)) return Object.values(type.getFields()).some(isMarked);
    if (!isObjectType(type) && !isInterfaceType(type)) return false;
    return Object.values(type.getFields()).some((field) => isMarked(field) || field.args.some(isMarked));
  });
}
