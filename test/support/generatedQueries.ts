import { buildSchema, type GraphQLField, type GraphQLObjectType, getNamedType, isObjectType } from 'graphql';
import { read } from './repository.js';
import { seeded } from './seeded.js';
import { times } from './times.js';

/** What argument values are drawn from, as JSON, by the name of the argument: mostly what fits. */
export type Values = Readonly<
  Record<string, { readonly fitting: readonly unknown[]; readonly odd: readonly unknown[] }>
>;

interface GeneratedQuery {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

const schema = buildSchema(read('src/schema/schema.graphql'), { assumeValidSDL: true });
const deepest = 4;

/** Queries of the schema with what clients use: aliases, fragments, variables, sometimes directives. Some have mistakes. */
export class QueryGenerator {
  readonly #random: () => number;
  #variables: Record<string, unknown> = {};
  #declared: string[] = [];
  #fragments: string[] = [];
  #count = 0;
  #hasDirectives = false;

  constructor(
    seed: number,
    private readonly values: Values,
  ) {
    this.#random = seeded(seed);
  }

  next(): GeneratedQuery {
    this.#variables = {};
    this.#declared = [];
    this.#fragments = [];
    this.#hasDirectives = this.#chance(0.15);
    const selection = this.#selection(schema.getQueryType() as GraphQLObjectType, 0);
    const head =
      this.#declared.length > 0 ? `query Q(${this.#declared.join(', ')}) ` : this.#pick(['', 'query ', 'query Q ']);
    return { query: [head + selection, ...this.#fragments].join('\n'), variables: this.#variables };
  }

  #selection(type: GraphQLObjectType, depth: number): string {
    const all = Object.values(type.getFields()).filter(({ name }) => name !== '_service');
    const leaves = all.filter((field) => !isObjectType(getNamedType(field.type)));
    const fields = depth < deepest || leaves.length === 0 ? all : leaves;
    const parts = times(1 + Math.floor(this.#random() * 4), () => this.#field(this.#pick(fields), depth));
    if (this.#chance(0.2)) parts.push('__typename');
    if (this.#chance(0.005)) parts.push('noSuchField');
    if (depth < deepest && this.#chance(0.15)) parts.push(`... ${this.#onType(type, depth)}`);
    if (depth < deepest && this.#chance(0.1)) {
      const n = this.#fragments.push('') - 1; // keeps its number: a fragment within it gets the next
      this.#fragments[n] = `fragment F${n} ${this.#onType(type, depth)}`;
      parts.push(`...F${n}${this.#directive()}`);
    }
    return `{ ${parts.join(' ')} }`;
  }

  #onType(type: GraphQLObjectType, depth: number): string {
    return `on ${type.name} ${this.#selection(type, depth + 1)}`;
  }

  #field({ name, args, type }: GraphQLField<unknown, unknown>, depth: number): string {
    const asked = args.filter((argument) => String(argument.type).endsWith('!') || this.#chance(0.2));
    const given = asked.map((argument) => `${argument.name}: ${this.#value(argument.name, String(argument.type))}`);
    const alias = this.#alias(name, args.length > 0);
    const named = getNamedType(type);
    const within = name === '_entities' ? this.#entities() : isObjectType(named) && this.#selection(named, depth + 1);
    const list = given.length > 0 ? `(${given.join(', ')})` : '';
    return `${alias}${name}${list}${this.#directive()}${within ? ` ${within}` : ''}`;
  }

  /** Fields of one name with other arguments need names of their own; one in a hundred does without. */
  #alias(name: string, hasArguments: boolean): string {
    if (hasArguments && this.#chance(0.99)) return `f${this.#count++}: `;
    return this.#chance(0.2) ? `${name}${Math.floor(this.#random() * 3)}: ` : '';
  }

  #entities(): string {
    const types = ['Taxpayer', 'TaxpayerToken', 'RefreshJob'].map((name) => schema.getType(name) as GraphQLObjectType);
    return `{ __typename ${types.map((type) => `... ${this.#onType(type, deepest - 2)}`).join(' ')} }`;
  }

  #value(name: string, type: string): string {
    const { fitting, odd } = this.values[name] as Values[string];
    const value = this.#pick(this.#chance(0.97) ? fitting : odd);
    return this.#chance(0.5) ? literal(value) : this.#variable(type, value);
  }

  #variable(type: string, value: unknown): string {
    const name = `v${this.#declared.length}`;
    const otherwise = this.#chance(0.1) ? ` = ${literal(value)}` : '';
    this.#declared.push(`$${name}: ${this.#chance(0.03) ? type.replace(/!$/, '') : type}${otherwise}`);
    if (this.#chance(0.98)) this.#variables[name] = value;
    return `$${name}`;
  }

  #directive(): string {
    if (!this.#hasDirectives || this.#chance(0.7)) return '';
    const value = this.#chance(0.5);
    return ` @${this.#pick(['skip', 'include'])}(if: ${this.#chance(0.5) ? value : this.#variable('Boolean!', value)})`;
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }
}

function literal(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${name}: ${literal(member)}`)
    .join(', ')} }`;
}
