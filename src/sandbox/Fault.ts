import { z } from 'zod';
import { type ApiEndpoint, apiEndpoints, type Route } from './routeOf.js';

const count = z.int().nonnegative();
const headers = z.record(z.string(), z.string()).optional();
/** Whether the request has been carried out (a link exists now) although its answer goes wrong. Default false. */
const afterEffect = z.boolean().optional();
const field = z.string().optional();

/**
 * A way for one answer to go wrong. Unless a kind says otherwise the request is carried out and the answer is the right
 * one but for what the kind names. A `field` left out is the most telling one of the endpoint.
 */
export const faultSchema = z.discriminatedUnion('kind', [
  // Another answer altogether.
  z.object({ kind: z.literal('answer-with-status'), status: count, headers, body: z.string().optional(), afterEffect }),
  z.object({ kind: z.literal('refuse-authorization') }),
  z.object({ kind: z.literal('redirect'), status: z.literal([301, 302, 303, 307, 308]), location: z.string() }),
  z.object({ kind: z.literal('answer-with-html') }),
  z.object({ kind: z.literal('answer-with-text-that-is-not-json') }),
  z.object({ kind: z.literal('answer-with-null') }),
  z.object({ kind: z.literal('answer-with-empty-body') }),

  // No answer, half an answer, a late answer.
  z.object({ kind: z.literal('never-answer'), afterEffect }),
  z.object({ kind: z.literal('answer-late'), afterMs: count }),
  /** The answer is decided on arrival and sent when `control.release(gate)` is called. */
  z.object({ kind: z.literal('hold-until-released'), gate: z.string() }),
  /** Headers at once, then `bytes` (default 1) of the body every `everyMs`. */
  z.object({ kind: z.literal('drip-body'), everyMs: count, bytes: count.optional() }),
  z.object({ kind: z.literal('reset-before-effect') }),
  z.object({ kind: z.literal('reset-after-effect') }),
  /** Content-Length promises more than comes before the connection closes. */
  z.object({ kind: z.literal('truncate-body') }),
  /** The right answer, then the connection closes although keep-alive was promised. */
  z.object({ kind: z.literal('close-after-answer') }),

  // The right record, spoilt.
  /** `value` defaults to 42. */
  z.object({ kind: z.literal('give-wrong-type'), field, value: z.unknown().optional() }),
  z.object({ kind: z.literal('omit-field'), field }),
  /** The record of that taxpayer, or of any other, in place of the one asked for. */
  z.object({ kind: z.literal('answer-for-other-taxpayer'), taxpayerId: z.string().optional() }),
  z.object({ kind: z.literal('answer-for-other-job'), jobId: z.string().optional() }),
  z.object({ kind: z.literal('give-unknown-enum-value'), field, value: z.string().optional() }),
  z.object({ kind: z.literal('give-invalid-utf8'), field }),
  z.object({ kind: z.literal('answer-with-wrong-content-type'), contentType: z.string().optional() }),
  /** Default: 200 for 201, 201 for 200. */
  z.object({ kind: z.literal('answer-with-wrong-success-status'), status: count.optional() }),

  // Answers that cost the reader dear.
  /** `bytes` in all; without Content-Length when `chunked`. */
  z.object({ kind: z.literal('answer-with-huge-body'), bytes: count, chunked: z.boolean().optional() }),
  /** Nested `levels` deep: the metadata of an otherwise right record, or the whole body. */
  z.object({ kind: z.literal('nest-deeply'), levels: count, where: z.enum(['metadata', 'body']).optional() }),
  /** A few kilobytes of gzip that expand to `bytes` of valid JSON. */
  z.object({ kind: z.literal('answer-with-gzip-bomb'), bytes: count }),
  z.object({ kind: z.literal('answer-with-broken-gzip') }),
]);

export type Fault = z.infer<typeof faultSchema>;

export const faultRuleSchema = z.strictObject({
  endpoint: z.enum([...apiEndpoints, 'any']),
  fault: faultSchema,
  taxpayerId: z.string().optional(),
  times: z.int().positive().optional(),
});

/** When a fault happens. Without `times` it stands until disarmed; with a taxpayer id only for calls that name it. */
export interface FaultRule {
  readonly endpoint: ApiEndpoint | 'any';
  readonly fault: Fault;
  readonly taxpayerId?: string | undefined;
  readonly times?: number | undefined;
}

export interface ArmedFault extends FaultRule {
  readonly id: number;
  /** How often it has happened. */
  readonly happened: number;
}

/** The faults that wait to happen, and the answers that wait to be released. */
export class FaultBook {
  #armed: ArmedFault[] = [];
  #nextId = 1;
  readonly #held = new Map<string, Set<() => void>>();

  /** Of several rules that match a request the one armed first happens. Gives the id to disarm it by. */
  arm(rule: FaultRule): number {
    const id = this.#nextId++;
    this.#armed.push({ ...rule, id, happened: 0 });
    return id;
  }

  disarm(id: number): boolean {
    const before = this.#armed.length;
    this.#armed = this.#armed.filter((rule) => rule.id !== id);
    return this.#armed.length < before;
  }

  disarmAll(): void {
    this.#armed = [];
  }

  armed(): readonly ArmedFault[] {
    return this.#armed;
  }

  /** The fault of this request, which uses up one of its times. */
  take(route: Route): Fault | undefined {
    if (this.#armed.length === 0) return undefined;
    const rule = this.#armed.find((candidate) => matches(candidate, route));
    if (!rule) return undefined;
    const used = { ...rule, happened: rule.happened + 1 };
    const isSpent = rule.times !== undefined && used.happened >= rule.times;
    this.#armed = this.#armed.flatMap((other) => (other !== rule ? [other] : isSpent ? [] : [used]));
    return rule.fault;
  }

  /** Keeps `send` until the gate is released; gives the function that forgets it. */
  hold(gate: string, send: () => void): () => void {
    const held = this.#held.get(gate) ?? new Set();
    this.#held.set(gate, held.add(send));
    return () => held.delete(send);
  }

  /** Sends every answer held at the gate now and gives their number; answers held later wait for the next release. */
  release(gate: string): number {
    const held = [...(this.#held.get(gate) ?? [])];
    this.#held.delete(gate);
    for (const send of held) send();
    return held.length;
  }
}

function matches(rule: FaultRule, route: Route): boolean {
  if (rule.endpoint !== 'any' && rule.endpoint !== route.endpoint) return false;
  return rule.taxpayerId === undefined || ('taxpayerId' in route && route.taxpayerId === rule.taxpayerId);
}
