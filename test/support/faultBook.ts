import { EventEmitter } from 'node:events';
import type { ApiEndpoint, Route } from '../../src/sandbox/endpoints.js';
import type { Fault, Hold } from './fault.js';

/** When a fault happens. Without `times` it stands until disarmed; with a taxpayer id only for calls that name it. */
export interface FaultRule {
  readonly endpoint: ApiEndpoint | 'any';
  readonly fault: Fault;
  readonly taxpayerId?: string | undefined;
  readonly times?: number | undefined;
}

/** The faults that wait to happen, and the answers that wait to be released. */
export function faultBook() {
  const armed = new Map<number, { readonly rule: FaultRule; left: number }>();
  const releases = new EventEmitter().setMaxListeners(0);
  let lastId = 0;
  const hold: Hold = (gate, send) => {
    releases.once(`gate ${gate}`, send);
    return () => releases.off(`gate ${gate}`, send);
  };

  return {
    /** Arms a fault and gives the id to disarm it by. Of several that match a request the one armed first happens. */
    arm(rule: FaultRule) {
      const id = ++lastId;
      armed.set(id, { rule, left: rule.times ?? Number.POSITIVE_INFINITY });
      return id;
    },
    disarm: (id: number) => armed.delete(id),
    disarmAll: () => armed.clear(),

    /** The fault of this call of the API, which uses up one of its times. */
    takeFault({ endpoint, taxpayerId }: Route): Fault | undefined {
      for (const [id, entry] of armed) {
        const { rule } = entry;
        if (rule.endpoint !== 'any' && rule.endpoint !== endpoint) continue;
        if (rule.taxpayerId !== undefined && rule.taxpayerId !== taxpayerId) continue;
        entry.left -= 1;
        if (entry.left === 0) armed.delete(id);
        return rule.fault;
      }
      return undefined;
    },

    hold,

    /** Sends the answers held at that gate and gives their number; later ones wait for the next release. */
    release(gate: string) {
      const held = releases.listenerCount(`gate ${gate}`);
      releases.emit(`gate ${gate}`);
      return held;
    },
  };
}
