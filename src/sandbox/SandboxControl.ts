import { z } from 'zod';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import { demoData } from './demoData.js';
import { endpointNames } from './endpoints.js';
import { type FaultBook, faultRule } from './FaultBook.js';
import type { RequestLog } from './RequestLog.js';
import { type SandboxState, UnknownRecord } from './SandboxState.js';

/** Sets the scene for a test and says what the service has seen. Changes hold for the next request received. */
export interface SandboxControl
  extends Omit<RequestLog, 'record' | 'recordConnection'>,
    Omit<FaultBook, 'takeFault' | 'hold'>,
    Omit<SandboxState, 'taxpayers' | 'readJob' | 'link' | 'addLink' | 'startJobFromLink'> {
  /** How long every answer of the API takes from now on, in milliseconds. */
  setLatency(latencyMs: number): void;
  /** From now on the old client secret is refused. */
  setClientSecret(clientSecret: string): void;
  /** Cuts every open connection, idle and busy alike; new ones are accepted. */
  dropConnections(): void;
  /** true: cuts all connections and refuses new ones. false: listens again on the same port. Resolves when done. */
  outage(isOut: boolean): Promise<void>;
}

export const controlPrefix = '/__sandbox/';

/**
 * The control over HTTP: `GET /__sandbox/<question>` with a query string, `POST /__sandbox/<command>` with a JSON body.
 * Answers 200 with the result as JSON (null where there is none), 400 for a bad input, 404 for an unknown name or record.
 */
export async function controlAnswer(
  control: SandboxControl,
  { method, target, body }: { readonly method: string; readonly target: string; readonly body: string },
): Promise<Answer> {
  const { pathname, searchParams } = new URL(target, 'http://sandbox.invalid');
  const name = `${method} ${pathname.slice(controlPrefix.length)}`;
  const commands = commandsOf(control);
  if (!Object.hasOwn(commands, name)) return errorAnswer(404, `No control named ${name}`);
  try {
    const input: unknown = method === 'GET' ? Object.fromEntries(searchParams) : JSON.parse(body || '{}');
    return jsonAnswer(200, (await commands[name]?.(input)) ?? null);
  } catch (error) {
    if (error instanceof UnknownRecord) return errorAnswer(404, error.message);
    if (error instanceof z.ZodError || error instanceof SyntaxError) return errorAnswer(400, error.message);
    throw error;
  }
}

const text = z.string();
const endpoint = z.enum(endpointNames);
const latencyMs = z.number().nonnegative();
const taxpayer = z.strictObject({
  name: text.optional(),
  metadata: z.record(text, z.unknown()).optional(),
  providerId: text.optional(),
  createdAt: text.optional(),
  status: text.optional(),
});
const taxpayerChanges = taxpayer.extend({ accessToken: text.optional() });
const newTaxpayer = taxpayerChanges.extend({ id: text.optional() });
const jobChanges = z.strictObject({
  name: text.optional(),
  status: text.optional(),
  endsAs: text.nullish(),
  durationMs: latencyMs.optional(),
});
const newJob = jobChanges.extend({ taxpayerId: text, jobId: text.optional() });
const job = { taxpayerId: text, jobId: text };

function commandsOf(c: SandboxControl): Readonly<Record<string, (input: unknown) => unknown>> {
  return {
    'GET demo': () => demoData,
    'GET counters': () => c.counters(),
    'GET requests': (input) => c.requests(z.object({ endpoint: endpoint.optional() }).parse(input).endpoint),
    'GET faults': () => c.armedFaults(),
    'GET taxpayer': (input) => c.taxpayer(z.object({ id: text.default('') }).parse(input).id),
    'POST reset-counters': () => c.resetCounters(),
    'POST when-called': withInput({ endpoint, times: z.int() }, (input) => c.whenCalled(input.endpoint, input.times)),
    'POST add-taxpayer': (input) => c.addTaxpayer(newTaxpayer.parse(input)),
    'POST add-taxpayers': withInput({ count: z.int().nonnegative(), props: taxpayer.optional() }, ({ count, props }) =>
      c.addTaxpayers(count, props),
    ),
    'POST update-taxpayer': withInput({ id: text, changes: taxpayerChanges }, ({ id, changes }) =>
      c.updateTaxpayer(id, changes),
    ),
    'POST rotate-token': withInput({ id: text }, ({ id }) => c.rotateToken(id)),
    'POST rotate-all-tokens': () => c.rotateAllTokens(),
    'POST add-job': (input) => c.addJob(newJob.parse(input)),
    'POST update-job': withInput({ ...job, changes: jobChanges }, ({ taxpayerId, jobId, changes }) =>
      c.updateJob(taxpayerId, jobId, changes),
    ),
    'POST restart-job': withInput(job, ({ taxpayerId, jobId }) => c.restartJob(taxpayerId, jobId)),
    'POST set-latency': withInput({ latencyMs }, (input) => c.setLatency(input.latencyMs)),
    'POST set-client-secret': withInput({ clientSecret: text }, ({ clientSecret }) => c.setClientSecret(clientSecret)),
    'POST arm': (input) => ({ id: c.arm(faultRule.parse(input)) }),
    'POST disarm': withInput({ id: z.int() }, ({ id }) => ({ disarmed: c.disarm(id) })),
    'POST disarm-all': () => c.disarmAll(),
    'POST release': withInput({ gate: text }, ({ gate }) => ({ released: c.release(gate) })),
    'POST drop-connections': () => c.dropConnections(),
    'POST outage': withInput({ isOut: z.boolean() }, ({ isOut }) => c.outage(isOut)),
  };
}

function withInput<Shape extends z.ZodRawShape>(shape: Shape, run: (input: z.output<z.ZodObject<Shape>>) => unknown) {
  const schema = z.strictObject(shape);
  return (input: unknown) => run(schema.parse(input) as z.output<z.ZodObject<Shape>>);
}
