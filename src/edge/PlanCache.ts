import type { GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { RequestContext } from '../context.js';
import { templateOf } from './literals.js';
import { type Plan, planOf, type Variables } from './plan.js';

/** A plan together with the text it is to answer. */
export interface BoundPlan extends Pick<Plan, 'type' | 'label'> {
  /** As {@link Plan.run}. */
  run(context: RequestContext, variables: Variables): ReturnType<Plan['run']>;
}

/** `off` is for tests. */
export type PlanMode = 'on' | 'off';

const maxDocuments = 1000;
/** All documents together, in characters: a plan is some ten times as large as its document. */
const maxCharacters = 1_000_000;

/**
 * Plans of operations that Apollo has parsed, validated and answered: nothing that Apollo would refuse can have one. They
 * are kept by the text of the document and the name of the operation. The string literals of the text, in which clients
 * write ids, may be any where they are the values of arguments.
 */
export class PlanCache {
  readonly #schema: GraphQLSchema;
  readonly #mode: PlanMode;
  readonly #templates = new KnownDocuments();
  /** Texts whose templates have no plan. */
  readonly #texts = new KnownDocuments();

  constructor(schema: GraphQLSchema, mode: PlanMode = 'on') {
    this.#schema = schema;
    this.#mode = mode;
  }

  /** The plan to answer with; undefined when this request is Apollo's. */
  find(query: string, operationName: string | undefined): BoundPlan | undefined {
    const { text, literals } = templateOf(query);
    const plan = this.#templates.get(text, operationName);
    if (plan) return bound(plan, query, literals);
    const exact = plan === null && literals.length > 0 ? this.#texts.get(query, operationName) : undefined;
    return exact ? bound(exact, query, []) : undefined;
  }

  /** Notes that Apollo answered an operation, so that it is valid and within all limits on documents. */
  accept(query: string, operationName: string | undefined): void {
    if (this.#mode === 'off') return;
    const { text, literals } = templateOf(query);
    const hasLiterals = literals.length > 0;
    const plan = this.#templates.getOrAdd(text, operationName, () =>
      planOf(this.#schema, text, operationName, hasLiterals),
    );
    if (plan !== null || !hasLiterals) return;
    this.#texts.getOrAdd(query, operationName, () => planOf(this.#schema, query, operationName, false));
  }
}

/** By document, then by `operationName`; null for operations that no plan answers. The least recently used go first. */
class KnownDocuments {
  readonly #documents = new LRUCache<string, Map<string | undefined, Plan | null>>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });

  get(text: string, operationName: string | undefined): Plan | null | undefined {
    return this.#documents.get(text)?.get(operationName);
  }

  getOrAdd(text: string, operationName: string | undefined, create: () => Plan | undefined): Plan | null {
    const operations = this.#documents.get(text) ?? new Map<string | undefined, Plan | null>();
    const known = operations.get(operationName);
    if (known !== undefined) return known;
    const created = create() ?? null;
    this.#documents.set(text, operations.set(operationName, created));
    return created;
  }
}

function bound({ type, label, run }: Plan, query: string, literals: readonly string[]): BoundPlan {
  return { type, label, run: (context, variables) => run({ query, literals, variables }, context) };
}
