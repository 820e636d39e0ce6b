import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { longestTimerMs } from '../process/Runtime.js';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import { demoData } from './demoData.js';
import { endpointNames } from './endpoints.js';
import { type FaultBook, faultRule } from './FaultBook.js';
import type { RequestLog } from './RequestLog.js';
import * as records from './SandboxState.js';

/** Sets up a test and says what the service has seen. Changes hold for the next request received. */
export interface SandboxControl extends RequestLog, FaultBook, records.SandboxState {
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
export async function controlAnswer(control: SandboxControl, request: IncomingMessage, body: string): Promise<Answer> {
  try {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://sandbox.invalid');
    const name = `${request.method} ${pathname.slice(controlPrefix.length)}`;
    const commands = commandsOf(control);
    if (!Object.hasOwn(commands, name)) return errorAnswer(404, `No control named ${name}`);
    const input: unknown = request.method === 'GET' ? Object.fromEntries(searchParams) : JSON.parse(body || '{}');
    return jsonAnswer(200, (await commands[name]?.(input)) ?? null);
  } catch (error) {
    if (error instanceof records.UnknownRecord) return errorAnswer(404, error.message);
    if (error instanceof z.ZodError || error instanceof SyntaxError) return errorAnswer(400, error.message);
    return errorAnswer(500, 'The control failed');
  }
}

const text = z.string();
const endpoint = z.enum(endpointNames);
const count = z.int().nonnegative();
const latencyMs = z.number().nonnegative().max(longestTimerMs);
const job = { taxpayerId: text, jobId: text };

function commandsOf(c: SandboxControl): Readonly<Record<string, (input: unknown) => unknown>> {
  return {
    'GET demo': withInput({}, () => demoData),
    'GET counters': withInput({}, c.counters),
    'GET requests': withInput({ endpoint: endpoint.optional() }, (input) => c.requests(input.endpoint)),
    'GET faults': withInput({}, c.armedFaults),
    'GET taxpayer': withInput({ id: text }, ({ id }) => records.found(c.taxpayer(id), 'taxpayer', id)),
    'POST reset-counters': withInput({}, c.resetCounters),
    'POST when-called': withInput({ endpoint, times: z.int() }, (input) => c.whenCalled(input.endpoint, input.times)),
    'POST add-taxpayer': (input) => c.addTaxpayer(records.newTaxpayer.parse(input)),
    'POST add-taxpayers': withInput({ count, props: records.taxpayerProps.optional() }, (input) =>
      c.addTaxpayers(input.count, input.props),
    ),
    'POST update-taxpayer': withInput({ id: text, changes: records.taxpayerChanges }, (input) =>
      c.updateTaxpayer(input.id, input.changes),
    ),
    'POST rotate-token': withInput({ id: text }, ({ id }) => c.rotateToken(id)),
    'POST rotate-all-tokens': withInput({}, c.rotateAllTokens),
    'POST add-job': (input) => c.addJob(records.newJob.parse(input)),
    'POST update-job': withInput({ ...job, changes: records.jobChanges }, ({ taxpayerId, jobId, changes }) =>
      c.updateJob(taxpayerId, jobId, changes),
    ),
    'POST restart-job': withInput(job, ({ taxpayerId, jobId }) => c.restartJob(taxpayerId, jobId)),
    'POST set-latency': withInput({ latencyMs }, (input) => c.setLatency(input.latencyMs)),
    'POST set-client-secret': withInput({ clientSecret: text }, ({ clientSecret }) => c.setClientSecret(clientSecret)),
    'POST arm': (input) => ({ id: c.arm(faultRule.parse(input)) }),
    'POST disarm': withInput({ id: z.int() }, ({ id }) => ({ disarmed: c.disarm(id) })),
    'POST disarm-all': withInput({}, c.disarmAll),
    'POST release': withInput({ gate: text }, ({ gate }) => ({ released: c.release(gate) })),
    'POST drop-connections': withInput({}, c.dropConnections),
    'POST outage': withInput({ isOut: z.boolean() }, ({ isOut }) => c.outage(isOut)),
  };
}

function withInput<Shape extends z.ZodRawShape>(shape: Shape, run: (input: z.output<z.ZodObject<Shape>>) => unknown) {
  const schema = z.strictObject(shape);
  return (input: unknown) => run(schema.parse(input) as z.output<z.ZodObject<Shape>>);
}
