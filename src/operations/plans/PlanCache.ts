import type { GraphQLSchema } from 'graphql';
import type { Deprecations } from '../documents/Deprecations.js';
import type { Recurring } from '../documents/DocumentMemory.js';
import type { Variables } from '../GraphQLRequest.js';
import type { OperationContext } from '../OperationContext.js';
import { Execution } from './Execution.js';
import { type Template, templateOf } from './literals.js';
import type { KnownPlan } from './Plan.js';
import { NotPlannable, planOf } from './planOperation.js';

/** `off` is for tests. */
export type PlanMode = 'on' | 'off';

/**
 * Plans of documents that Apollo has parsed, validated and answered: nothing that Apollo would refuse has one. A plan is
 * kept by its document's template, so that it serves any string literals; where it has to depend on them, by the document.
 */
export class PlanCache {
  constructor(
    private readonly schema: GraphQLSchema,
    private readonly options: {
      readonly memory: Recurring<KnownPlan>;
      /** Longer lists of representations are Apollo's to refuse. */
      readonly maxRepresentations: number;
      readonly deprecations: Deprecations;
      readonly mode?: PlanMode | undefined;
      /** Called when a bug of ours kept a plan from being made; Apollo answers then. */
      readonly onBug?: (error: unknown) => void;
    },
  ) {}

  /** The plan that answers this request; undefined when Apollo is to answer it. */
  find(query: string, operationName: string | undefined, variables: Variables) {
    let template = templateOf(query);
    let plan = this.#planOf(template);
    if (plan?.type === 'none') {
      template = { text: query, literals: [] };
      plan = this.#planOf(template);
    }
    if (plan === undefined || plan.type === 'none') return undefined;
    if (operationName !== undefined && operationName !== plan.operationName) return undefined; // Apollo refuses it
    const coerced = plan.readVariables(variables);
    if (coerced === undefined) return undefined;
    const request = { query, literals: template.literals, variables: coerced };
    const { type, label, scopes, deprecated, steps } = plan;
    const perform = (context: OperationContext) => new Execution(plan, request, context).run();
    return { by: 'plan' as const, type, label, scopes, deprecated, rootFields: steps.length, perform };
  }

  /** Notes that Apollo answered a document, so that it is valid and within all limits on documents. */
  accept(query: string): void {
    const { memory, mode } = this.options;
    if (mode === 'off') return;
    const { text } = templateOf(query);
    const plan = memory.get(text);
    if (plan === undefined) memory.see(text);
    else if (plan.type === 'none' && text !== query) memory.see(query);
  }

  /** Makes the plan when a document was accepted and comes again: making one costs more than one answer saves. */
  #planOf({ text, literals }: Template): KnownPlan | undefined {
    const { memory, onBug } = this.options;
    const known = memory.get(text);
    if (known !== undefined || !memory.wasSeen(text)) return known;
    let plan: KnownPlan = { type: 'none' };
    try {
      plan = planOf(this.schema, text, literals.length, this.options);
    } catch (error) {
      if (!(error instanceof NotPlannable)) onBug?.(error);
    }
    memory.keep(text, plan);
    return plan;
  }
}
