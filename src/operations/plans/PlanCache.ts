import type { GraphQLSchema } from 'graphql';
import type { Recurring } from '../documents/DocumentMemory.js';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext } from '../OperationContext.js';
import { Execution } from './Execution.js';
import type { KnownPlan } from './Plan.js';
import { NotPlannable, planOf } from './planOperation.js';

/** `off` is for tests. */
export type PlanMode = 'on' | 'off';

/** Plans of documents that Apollo has answered, so a document that would be refused never has a plan. */
export class PlanCache {
  constructor(
    private readonly schema: GraphQLSchema,
    private readonly options: {
      readonly memory: Recurring<KnownPlan>;
      /** A request with a longer list of representations gets no plan: {@link WorkFinder} refuses it. */
      readonly maxRepresentations: number;
      readonly mode?: PlanMode | undefined;
      /** Called when planning failed because of a bug of ours; Apollo answers instead. */
      readonly onBug?: (error: unknown) => void;
    },
  ) {}

  /** The plan that answers this request; undefined when Apollo is to answer it. */
  find(query: string, operationName: string | undefined, variables: Variables) {
    const plan = this.#planOf(query);
    if (plan === undefined || plan.type === 'none') return undefined;
    if (operationName !== undefined && operationName !== plan.operationName) return undefined; // WorkFinder refuses it
    const coerced = plan.readVariables(variables);
    if (coerced === undefined) return undefined;
    const request = { query, variables: coerced };
    const { type, label, steps } = plan;
    const perform = (context: OperationContext) => new Execution(plan, request, context).run();
    return { by: 'plan' as const, type, label, rootFields: steps.length, perform };
  }

  /** Notes that Apollo answered a document: it is valid and within all limits on documents. */
  accept(query: string): void {
    const { memory, mode } = this.options;
    if (mode !== 'off' && memory.get(query) === undefined) memory.see(query);
  }

  /** Finds a plan. Makes it only when an accepted document comes again: planning costs more than a single answer saves. */
  #planOf(query: string): KnownPlan | undefined {
    const { memory, maxRepresentations, onBug } = this.options;
    const known = memory.get(query);
    if (known !== undefined || !memory.wasSeen(query)) return known;
    let plan: KnownPlan = { type: 'none' };
    try {
      plan = planOf(this.schema, query, maxRepresentations);
    } catch (error) {
      if (!(error instanceof NotPlannable)) onBug?.(error);
    }
    memory.keep(query, plan);
    return plan;
  }
}
