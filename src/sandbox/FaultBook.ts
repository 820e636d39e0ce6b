import { z } from 'zod';
import { apiEndpoints, type Route } from './endpoints.js';
import { type Fault, faultSchema } from './Fault.js';

/** When a fault happens. Without `times` it stands until disarmed; with a taxpayer id only for calls that name it. */
export const faultRule = z.strictObject({
  endpoint: z.enum([...apiEndpoints, 'any']),
  fault: faultSchema,
  taxpayerId: z.string().optional(),
  times: z.int().positive().optional(),
});
export type FaultRule = Readonly<z.output<typeof faultRule>>;

export interface ArmedFault extends FaultRule {
  readonly id: number;
  /** How often it has happened. */
  readonly happened: number;
}

export type FaultBook = ReturnType<typeof faultBook>;

/** The faults that wait to happen, and the answers that wait to be released. */
export function faultBook() {
  const armed = new Map<number, ArmedFault>();
  const held = new Map<string, Set<() => void>>();
  let lastId = 0;

  return {
    /** Arms a fault and gives the id to disarm it by. Of several that match a request the one armed first happens. */
    arm(rule: FaultRule): number {
      const id = ++lastId;
      armed.set(id, { ...rule, id, happened: 0 });
      return id;
    },
    disarm: (id: number) => armed.delete(id),
    disarmAll: () => armed.clear(),
    armedFaults: (): readonly ArmedFault[] => [...armed.values()],

    /** The fault of this request, which uses up one of its times. */
    takeFault(route: Route): Fault | undefined {
      for (const [id, rule] of armed) {
        if (rule.endpoint !== 'any' && rule.endpoint !== route.endpoint) continue;
        if (rule.taxpayerId !== undefined && rule.taxpayerId !== route.taxpayerId) continue;
        const happened = rule.happened + 1;
        if (happened === rule.times) armed.delete(id);
        else armed.set(id, { ...rule, happened });
        return rule.fault;
      }
      return undefined;
    },

    /** Keeps `send` until the gate is released; gives the function that forgets it. */
    hold(gate: string, send: () => void): () => void {
      const sends = held.get(gate) ?? new Set();
      held.set(gate, sends.add(send));
      return () => sends.delete(send);
    },

    /** Sends the answers held by `hold-until-released` at that gate and gives their number; later ones wait for the next release. */
    release(gate: string): number {
      const sends = [...(held.get(gate) ?? [])];
      held.delete(gate);
      for (const send of sends) send();
      return sends.length;
    },
  };
}
