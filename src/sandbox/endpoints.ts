import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import type { SandboxState, SandboxTaxpayer } from './SandboxState.js';

/** What the endpoints answer from. */
export interface Service {
  readonly state: SandboxState;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly apiVersion: string;
  /** Without trailing slash. */
  readonly url: string;
}

export interface ApiCall {
  readonly route: Route;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One endpoint of the service: where it is, how it answers, and what of its record the faults spoil. */
export interface Endpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly answer: (call: ApiCall, service: Service) => Answer;
  /** The member that tells most when it is missing or of a wrong type. */
  readonly tellingField: string;
  readonly textField: string;
  /** The member that names the taxpayer. */
  readonly taxpayerField?: string;
  /** The record that the endpoint shows of a taxpayer, where nothing else decides it. */
  readonly recordOf?: (taxpayer: SandboxTaxpayer) => Readonly<Record<string, unknown>>;
}

/** The interface of the service. A new endpoint is one more entry here: routing, counters, faults and control follow. */
const table = {
  createClientLink: {
    method: 'POST',
    path: '/client-links',
    answer: createClientLink,
    tellingField: 'url',
    textField: 'url',
  },
  taxpayerToken: {
    method: 'GET',
    path: '/auth/tax-payer/{taxpayerId}/token',
    answer: showing(tokenRecord),
    tellingField: 'access_token',
    textField: 'name',
    taxpayerField: 'taxpayer_id',
    recordOf: tokenRecord,
  },
  refreshJob: {
    method: 'GET',
    path: '/tax-payer/{taxpayerId}/refresh/{jobId}',
    answer: refreshJob,
    tellingField: 'status',
    textField: 'name',
    taxpayerField: 'taxpayerId',
  },
} satisfies Record<string, Endpoint>;

export type ApiEndpoint = keyof typeof table;
export const endpoints: Readonly<Record<ApiEndpoint, Endpoint>> = table;
export const apiEndpoints = Object.keys(table) as ApiEndpoint[];

/** What a received request is counted as; `hostedPage` is a person in the taxpayer flow, `unknown` is off the contract. */
export type EndpointName = ApiEndpoint | 'hostedPage' | 'unknown';
export const endpointNames: readonly EndpointName[] = [...apiEndpoints, 'hostedPage', 'unknown'];

/** Where a request goes; the ids are empty where the path has none. */
export type Route = typeof noIds &
  ({ readonly endpoint: ApiEndpoint | 'hostedPage' } | { readonly endpoint: 'unknown'; readonly refusal: Answer });

const noIds = { taxpayerId: '', jobId: '', linkId: '', action: '' };

const routes = [
  ...apiEndpoints.map((endpoint) => ({ endpoint, method: table[endpoint].method, path: table[endpoint].path })),
  { endpoint: 'hostedPage' as const, method: 'GET', path: '/c/{linkId}' },
  { endpoint: 'hostedPage' as const, method: 'POST', path: '/c/{linkId}/{action}' },
].map((route) => ({ ...route, pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) }));

/**
 * Finds the endpoint of a request target. The path is taken as received: dot segments are not resolved and double
 * slashes not merged but `unknown`, so a client whose ids change the path is caught.
 */
export function routeOf(method: string, target: string): Route {
  const path = target.replace(/\?.*/s, '');
  for (const { endpoint, method: allow, pattern } of routes) {
    const groups = pattern.exec(path);
    if (!groups) continue;
    const segments = Object.entries({ ...groups.groups });
    if (segments.some(([, segment]) => /^(\.|%2e){1,2}$/i.test(segment))) break;
    const ids = decoded(segments);
    if (!ids) return unknown(400, 'The path is not percent-encoded UTF-8');
    if (method !== allow) return unknown(405, 'The path has another method', { allow });
    return { endpoint, ...noIds, ...ids };
  }
  return unknown(404, 'No such path');
}

/** Carries a call out and gives the right answer. */
export function answerOfCall(endpoint: Endpoint, call: ApiCall, service: Service): Answer {
  if (call.target.includes('?')) return errorAnswer(400, 'The endpoint takes no query string');
  return endpoint.answer(call, service);
}

function unknown(status: number, message: string, headers?: Answer['headers']): Route {
  return { endpoint: 'unknown', ...noIds, refusal: errorAnswer(status, message, headers) };
}

function decoded(segments: readonly (readonly [string, string])[]): Record<string, string> | undefined {
  try {
    return Object.fromEntries(segments.map(([name, segment]) => [name, decodeURIComponent(segment)]));
  } catch {
    return undefined;
  }
}

const text = z.string();
const textsOf = (...names: string[]) => z.partialRecord(z.enum(names), text);
const clientLinkBody = z.strictObject({
  metadata: z.record(text, z.unknown()).optional(),
  settings: z
    .strictObject({
      flowType: text.optional(),
      transcripts: z
        .partialRecord(z.enum(['ACTR', 'RECA', 'WAID', 'VENF', 'W2', '1095-A', 'NOTICE']), z.array(text))
        .optional(),
      prefillData: z
        .strictObject({
          personalInfo: textsOf('firstName', 'lastName', 'ssn').optional(),
          businessInfo: textsOf('name', 'taxId', 'type', 'phone', 'title').optional(),
          address: textsOf('street', 'other', 'city', 'state', 'zip').optional(),
        })
        .optional(),
    })
    .optional(),
});

function createClientLink(call: ApiCall, service: Service): Answer {
  const refusal = clientRefusal(call, service);
  if (refusal) return refusal;
  if (!/^application\/json *(;|$)/i.test(call.headers['content-type'] ?? '')) {
    return errorAnswer(415, 'The body must be application/json');
  }
  const input = parsedJson(call.body);
  if (input === undefined) return errorAnswer(400, 'The body is not JSON');
  const checked = clientLinkBody.safeParse(input);
  if (!checked.success) {
    const where = checked.error.issues.map((issue) => `${issue.path.join('.') || 'body'} (${issue.code})`);
    return errorAnswer(422, `The body has members that are not accepted: ${where.join(', ')}`);
  }
  // The metadata is kept as it was sent; the checked copy may have lost odd keys such as __proto__.
  const { metadata = {} } = input as { metadata?: Record<string, unknown> };
  const { id } = service.state.addLink(checked.data.settings ?? {}, metadata);
  return jsonAnswer(201, { url: `${service.url}/c/${id}`, id });
}

/** An endpoint that shows the client a record of the taxpayer. */
function showing(recordOf: (taxpayer: SandboxTaxpayer) => object): Endpoint['answer'] {
  return (call, service) => {
    const refusal = clientRefusal(call, service) ?? readRefusal(call, service);
    if (refusal) return refusal;
    const taxpayer = service.state.taxpayer(call.route.taxpayerId);
    return taxpayer ? jsonAnswer(200, recordOf(taxpayer)) : errorAnswer(404, 'No such taxpayer');
  };
}

function tokenRecord(taxpayer: SandboxTaxpayer) {
  return {
    access_token: taxpayer.accessToken,
    taxpayer_id: taxpayer.id,
    name: taxpayer.name,
    metadata: taxpayer.metadata,
    provider_id: taxpayer.providerId,
    created_at: taxpayer.createdAt,
    status: taxpayer.status,
  };
}

function refreshJob(call: ApiCall, service: Service): Answer {
  const refusal = taxpayerRefusal(call, service);
  if (refusal) return refusal;
  const job = service.state.readJob(call.route.taxpayerId, call.route.jobId);
  if (!job) return errorAnswer(404, 'No such refresh job');
  const { status, jobId, taxpayerId, name } = job;
  return jsonAnswer(200, { status, jobId, taxpayerId, name });
}

/** For a call with the credentials of the client. */
function clientRefusal({ headers }: ApiCall, { clientId, clientSecret }: Service): Answer | undefined {
  const expected = `Bearer ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  if (headers.authorization === expected) return undefined;
  return errorAnswer(401, 'The client credentials are missing or wrong');
}

/** For a reading call with the access token of a taxpayer. */
function taxpayerRefusal(call: ApiCall, service: Service): Answer | undefined {
  const { authorization } = call.headers;
  if (!authorization) return errorAnswer(401, 'The access token is missing');
  const refusal = readRefusal(call, service);
  if (refusal) return refusal;
  const taxpayer = service.state.taxpayer(call.route.taxpayerId);
  if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
  if (authorization === `Bearer ${taxpayer.accessToken}`) return undefined;
  return errorAnswer(401, 'The access token is not that of the taxpayer');
}

function readRefusal({ headers, body }: ApiCall, { apiVersion }: Service): Answer | undefined {
  const { 'service-api-version': version = apiVersion } = headers;
  if (version !== apiVersion) return errorAnswer(400, 'Service-API-Version is not supported');
  return body === '' ? undefined : errorAnswer(400, 'The endpoint takes no body');
}

function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}
