import { z } from 'zod';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import { demoData } from './demoData.js';
import { faultRuleSchema } from './Fault.js';
import { apiEndpoints } from './routeOf.js';
import type { SandboxControl } from './SandboxControl.js';
import { UnknownRecord } from './SandboxState.js';

export const controlPrefix = '/__sandbox/';

type Command = (control: SandboxControl, input: unknown) => unknown;

const text = z.string();
const milliseconds = z.number().nonnegative();
const endpointName = z.enum([...apiEndpoints, 'hostedPage', 'unknown']);
const taxpayerChanges = z
  .strictObject({
    name: text,
    metadata: z.record(text, z.unknown()),
    providerId: text,
    createdAt: text,
    status: text,
    accessToken: text,
  })
  .partial();
const taxpayerProps = taxpayerChanges.extend({ id: text.optional() });
const jobChanges = z
  .strictObject({ name: text, status: text, endsAs: text.nullable(), durationMs: milliseconds })
  .partial();
const jobRef = z.strictObject({ taxpayerId: text, jobId: text });
const jobProps = jobChanges.extend({ taxpayerId: text, jobId: text.optional() });

const questions: Readonly<Record<string, (control: SandboxControl, query: URLSearchParams) => unknown>> = {
  demo: () => demoData,
  counters: (control) => control.counters(),
  requests: (control, query) => control.requests(endpointName.optional().parse(query.get('endpoint') ?? undefined)),
  faults: (control) => control.armedFaults(),
  taxpayer: (control, query) => control.taxpayer(query.get('id') ?? '') ?? null,
};

const commands: Readonly<Record<string, Command>> = {
  'reset-counters': command(z.unknown(), (control) => control.resetCounters()),
  'when-called': command(z.strictObject({ endpoint: endpointName, times: z.int() }), (control, { endpoint, times }) =>
    control.whenCalled(endpoint, times),
  ),
  'add-taxpayer': command(taxpayerProps, (control, props) => control.addTaxpayer(props)),
  'add-taxpayers': command(
    z.strictObject({ count: z.int().nonnegative(), props: taxpayerChanges.omit({ accessToken: true }).optional() }),
    (control, { count, props }) => control.addTaxpayers(count, props),
  ),
  'update-taxpayer': command(z.strictObject({ id: text, changes: taxpayerChanges }), (control, { id, changes }) =>
    control.updateTaxpayer(id, changes),
  ),
  'rotate-token': command(z.strictObject({ id: text }), (control, { id }) => control.rotateToken(id)),
  'rotate-all-tokens': command(z.unknown(), (control) => control.rotateAllTokens()),
  'add-job': command(jobProps, (control, props) => control.addJob(props)),
  'update-job': command(jobRef.extend({ changes: jobChanges }), (control, { taxpayerId, jobId, changes }) =>
    control.updateJob(taxpayerId, jobId, changes),
  ),
  'restart-job': command(jobRef, (control, { taxpayerId, jobId }) => control.restartJob(taxpayerId, jobId)),
  'set-latency': command(z.strictObject({ latencyMs: milliseconds }), (control, { latencyMs }) =>
    control.setLatency(latencyMs),
  ),
  'set-client-secret': command(z.strictObject({ clientSecret: text }), (control, { clientSecret }) =>
    control.setClientSecret(clientSecret),
  ),
  arm: command(faultRuleSchema, (control, rule) => ({ id: control.arm(rule) })),
  disarm: command(z.strictObject({ id: z.int() }), (control, { id }) => ({ disarmed: control.disarm(id) })),
  'disarm-all': command(z.unknown(), (control) => control.disarmAll()),
  release: command(z.strictObject({ gate: text }), (control, { gate }) => ({ released: control.release(gate) })),
  'drop-connections': command(z.unknown(), (control) => control.dropConnections()),
  outage: command(z.strictObject({ isOut: z.boolean() }), (control, { isOut }) => control.outage(isOut)),
};

/**
 * The control surface over HTTP: `GET /__sandbox/<question>` and `POST /__sandbox/<command>` with a JSON body. Answers
 * 200 with the result as JSON (null where there is none), 400 for a bad body, 404 for an unknown name or record.
 */
export async function controlRoutes(
  control: SandboxControl,
  request: { readonly method: string; readonly target: string; readonly body: string },
): Promise<Answer> {
  const { pathname, searchParams } = new URL(request.target, 'http://sandbox.invalid');
  const name = pathname.slice(controlPrefix.length);
  try {
    if (request.method === 'GET' && Object.hasOwn(questions, name)) {
      return jsonAnswer(200, questions[name]?.(control, searchParams));
    }
    if (request.method === 'POST' && Object.hasOwn(commands, name)) {
      const input: unknown = request.body === '' ? {} : JSON.parse(request.body);
      return jsonAnswer(200, (await commands[name]?.(control, input)) ?? null);
    }
    return errorAnswer(404, `No control named ${request.method} ${name}`);
  } catch (error) {
    if (error instanceof UnknownRecord) return errorAnswer(404, error.message);
    if (error instanceof z.ZodError || error instanceof SyntaxError) return errorAnswer(400, error.message);
    throw error;
  }
}

function command<T>(input: z.ZodType<T>, run: (control: SandboxControl, input: T) => unknown): Command {
  return (control, body) => run(control, input.parse(body));
}
