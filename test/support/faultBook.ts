import { EventEmitter } from 'node:events';
import type { ApiEndpoint, Route } from '../../src/sandbox/endpoints.js';
import type { Fault } from './fault.js';

/** When a fault happens. Without `times` it stands until disarmed; with a taxpayer id only for calls that name it. */
export interface FaultRule {
  readonly endpoint: ApiEndpoint | 'any';
  readonly fault: Fault;
  readonly taxpayerId?: string | undefined;
  readonly times?: number | undefined;
}

/** The faults that wait to happen, and the answers that wait to be released. */
export function faultBook() {
  const armed = new Map<number, FaultRule & { readonly id: number; readonly happened: number }>();
  const releases = new EventEmitter().setMaxListeners(0);
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
    /** With how often each has happened. */
    armedFaults: () => [...armed.values()],

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
      releases.once(`gate ${gate}`, send);
      return () => releases.off(`gate ${gate}`, send);
    },

    /** Sends the answers held by `hold-until-released` at that gate and gives their number; later ones wait for the next release. */
    release(gate: string): number {
      const held = releases.listenerCount(`gate ${gate}`);
      releases.emit(`gate ${gate}`);
      return held;
    },
  };
}
