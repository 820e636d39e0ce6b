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
    const hasLiterals = literals.length > 0;
    const plan = this.#templates.planOf(text, operationName, () =>
      planOf(this.#schema, text, operationName, hasLiterals),
    );
    if (plan) return bound(plan, query, literals);
    if (plan === undefined || !hasLiterals) return undefined;
    const exact = this.#texts.planOf(query, operationName, () => planOf(this.#schema, query, operationName, false));
    return exact ? bound(exact, query, []) : undefined;
  }

  /** Notes that Apollo answered an operation, so that it is valid and within all limits on documents. */
  accept(query: string, operationName: string | undefined): void {
    if (this.#mode === 'off') return;
    const { text, literals } = templateOf(query);
    this.#templates.accept(text, operationName);
    if (literals.length > 0 && this.#templates.hasNoPlan(text, operationName)) this.#texts.accept(query, operationName);
  }
}

/** Documents that were answered, with the plans of those that came again: making one costs more than one answer saves. */
class KnownDocuments {
  /** By document, then by `operationName`. */
  readonly #documents = new LRUCache<string, Map<string | undefined, Plan | 'accepted' | 'no plan'>>({
    max: maxDocuments,
    maxSize: maxCharacters,
    sizeCalculation: (_, text) => text.length + 1,
  });

  /** Null for an operation that no plan answers, undefined for one that is not known. */
  planOf(text: string, operationName: string | undefined, create: () => Plan | undefined): Plan | null | undefined {
    const operations = this.#documents.get(text);
    let known = operations?.get(operationName);
    if (known === 'accepted') {
      known = create() ?? 'no plan';
      operations?.set(operationName, known);
    }
    return known === 'no plan' ? null : (known as Plan | undefined);
  }

  hasNoPlan(text: string, operationName: string | undefined): boolean {
    return this.#documents.get(text)?.get(operationName) === 'no plan';
  }

  accept(text: string, operationName: string | undefined): void {
    const operations = this.#documents.get(text) ?? new Map<string | undefined, Plan | 'accepted' | 'no plan'>();
    if (operations.has(operationName)) return;
    this.#documents.set(text, operations.set(operationName, 'accepted'));
  }
}

function bound({ type, label, prepare }: Plan, query: string, literals: readonly string[]): BoundPlan {
  return { type, label, prepare: (variables) => prepare({ query, literals, variables }) };
}
