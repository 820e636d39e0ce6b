import type { GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import { templateOf } from './literals.js';
import type { Execute, Plan, Variables } from './Plan.js';
import { planOf } from './planOperation.js';

/** A plan together with the text it is to answer. */
export interface BoundPlan extends Pick<Plan, 'type' | 'label'> {
  /** As {@link Plan.prepare}. */
  prepare(variables: Variables): Execute | undefined;
}

/** `off` is for tests. */
export type PlanMode = 'on' | 'off';

const maxDocuments = 1000;
/** All documents together, in characters: a plan is some ten times as large as its document. */
const maxCharacters = 1_000_000;

export interface PlanCacheOptions {
  readonly mode?: PlanMode | undefined;
  /** Told when making a plan failed in a way that was not meant; Apollo answers then. */
  readonly onBug?: (error: unknown) => void;
}

/**
 * Plans of operations that Apollo has parsed, validated and answered: nothing that Apollo would refuse can have one. They
 * are kept by the text of a document that is one operation. The string literals of the text, in which clients write ids,
 * may be any where they are the values of arguments.
 */
export class PlanCache {
  readonly #schema: GraphQLSchema;
  readonly #options: PlanCacheOptions;
  readonly #templates = new KnownDocuments();
  /** Texts whose templates have no plan. */
  readonly #texts = new KnownDocuments();

  constructor(schema: GraphQLSchema, options: PlanCacheOptions = {}) {
    this.#schema = schema;
    this.#options = options;
  }

  /** The plan to answer with; undefined when this request is Apollo's. */
  find(query: string, operationName: string | undefined): BoundPlan | undefined {
    const { text, literals } = templateOf(query);
    const plan = this.#templates.planOf(text, () => this.#create(text, literals.length));
    if (plan) return bound(plan, operationName, query, literals);
    if (plan === undefined || literals.length === 0) return undefined;
    const exact = this.#texts.planOf(query, () => this.#create(query, 0));
    return exact ? bound(exact, operationName, query, []) : undefined;
  }

  /** Notes that Apollo answered a document, so that it is valid and within all limits on documents. */
  accept(query: string): void {
    if (this.#options.mode === 'off') return;
    const { text, literals } = templateOf(query);
    this.#templates.accept(text);
    if (literals.length > 0 && this.#templates.hasNoPlan(text)) this.#texts.accept(query);
  }

  #create(text: string, literals: number): Plan | undefined {
    try {
      return planOf(this.#schema, text, literals);
    } catch (error) {
      this.#options.onBug?.(error);
      return undefined;
    }
  }
}

/** Documents that were answered, with the plans of those that came again: making one costs more than one answer saves. */
class KnownDocuments {
  readonly #documents = new LRUCache<string, Plan | 'accepted' | 'no plan'>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });

  /** Null for a document that no plan answers, undefined for one that is not known. */
  planOf(text: string, create: () => Plan | undefined): Plan | null | undefined {
    let known = this.#documents.get(text);
    if (known === 'accepted') {
      known = create() ?? 'no plan';
      this.#documents.set(text, known);
    }
    return known === 'no plan' ? null : known;
  }

  hasNoPlan(text: string): boolean {
    return this.#documents.get(text) === 'no plan';
  }

  accept(text: string): void {
    if (!this.#documents.has(text)) this.#documents.set(text, 'accepted');
  }
}

/** A name that is not the operation's is for Apollo to refuse. */
function bound(
  { type, label, operationName, prepare }: Plan,
  wanted: string | undefined,
  query: string,
  literals: readonly string[],
): BoundPlan | undefined {
  if (wanted !== undefined && wanted !== operationName) return undefined;
  return { type, label, prepare: (variables) => prepare({ query, literals, variables }) };
}
