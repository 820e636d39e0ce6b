import type { GraphQLSchema } from 'graphql';
import { DocumentMemory, type KnownPlan } from '../documents/DocumentMemory.js';
import type { Recurring } from '../documents/Recurring.js';
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

export interface PlanCacheOptions {
  /** Where plans are kept; by default in a memory of their own. */
  readonly memory?: Recurring<KnownPlan>;
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
  readonly #plans: Recurring<KnownPlan>;

  constructor(schema: GraphQLSchema, options: PlanCacheOptions = {}) {
    this.#schema = schema;
    this.#options = options;
    this.#plans = options.memory ?? new DocumentMemory().plans;
  }

  /** The plan to answer with; undefined when this request is Apollo's. */
  find(query: string, operationName: string | undefined): BoundPlan | undefined {
    const { text, literals } = templateOf(query);
    const plan = this.#planOf(text, text, literals.length);
    if (plan === undefined) return undefined;
    if (plan !== 'no plan') return bound(plan, operationName, query, literals);
    const exact = literals.length === 0 ? plan : this.#planOf(exactly(query), query, 0);
    return exact === undefined || exact === 'no plan' ? undefined : bound(exact, operationName, query, []);
  }

  /** Notes that Apollo answered a document, so that it is valid and within all limits on documents. */
  accept(query: string): void {
    if (this.#options.mode === 'off') return;
    const { text, literals } = templateOf(query);
    const plan = this.#plans.get(text);
    if (plan === undefined) this.#plans.see(text);
    else if (plan === 'no plan' && literals.length > 0) this.#plans.see(exactly(query));
  }

  /** What is kept under `key`; made of `text` when it was accepted: making a plan costs more than one answer saves. */
  #planOf(key: string, text: string, literals: number): KnownPlan | undefined {
    const known = this.#plans.get(key);
    if (known !== undefined || !this.#plans.wasSeen(key)) return known;
    const plan = this.#create(text, literals) ?? 'no plan';
    this.#plans.keep(key, plan);
    return plan;
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

/** Where the plan of a text is kept whose template has none: no document begins like this. */
function exactly(query: string): string {
  return `=${query}`;
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
