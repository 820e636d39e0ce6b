import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import { clientLinkSettings, type SandboxState, type SandboxTaxpayer } from './SandboxState.js';

/** A call of an endpoint, and what it is answered from. */
export interface ApiCall {
  readonly route: Extract<Route, { readonly endpoint: ApiEndpoint }>;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly service: {
    readonly state: SandboxState;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly apiVersion: string;
    /** Without trailing slash. */
    readonly url: string;
  };
}

/** One endpoint of the service: where it is, how it answers, and what of its record the faults spoil. */
export interface Endpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly answer: (call: ApiCall) => Answer;
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
    ...showing(tokenRecord),
    tellingField: 'access_token',
    textField: 'name',
    taxpayerField: 'taxpayer_id',
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
export type Route =
  | (typeof noIds & { readonly endpoint: ApiEndpoint })
  | (typeof noIds & { readonly endpoint: 'hostedPage' })
  | (typeof noIds & { readonly endpoint: 'unknown'; readonly refusal: Answer });

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
    const match = pattern.exec(path);
    if (!match) continue;
    const segments = Object.entries({ ...match.groups });
    if (segments.some(([, segment]) => /^(\.|%2e){1,2}$/i.test(segment))) break;
    try {
      const ids = Object.fromEntries(segments.map(([name, segment]) => [name, decodeURIComponent(segment)]));
      if (method === allow) return { endpoint, ...noIds, ...ids };
    } catch {
      return unknown(400, 'The path is not percent-encoded UTF-8');
    }
    return unknown(405, 'The path has another method', { allow });
  }
  return unknown(404, 'No such path');
}

function unknown(status: number, message: string, headers?: Answer['headers']): Route {
  return { endpoint: 'unknown', ...noIds, refusal: errorAnswer(status, message, headers) };
}

const clientLinkBody = z.strictObject({
  metadata: z.record(z.string(), z.unknown()).optional(),
  settings: clientLinkSettings.optional(),
});

function createClientLink(call: ApiCall): Answer {
  const refusal = clientRefusal(call);
  if (refusal) return refusal;
  if (!/^application\/json *(;|$)/i.test(call.headers['content-type'] ?? '')) {
    return errorAnswer(415, 'The body must be application/json');
  }
  let input: unknown;
  try {
    input = JSON.parse(call.body);
  } catch {
    return errorAnswer(400, 'The body is not JSON');
  }
  const checked = clientLinkBody.safeParse(input);
  if (!checked.success) {
    const where = checked.error.issues.map((issue) => `${issue.path.join('.') || 'body'} (${issue.code})`);
    return errorAnswer(422, `The body has members that are not accepted: ${where.join(', ')}`);
  }
  // The metadata is kept as it was sent; the checked copy may have lost odd keys such as __proto__.
  const { metadata = {} } = input as { metadata?: Record<string, unknown> };
  const { id } = call.service.state.addLink(checked.data.settings ?? {}, metadata);
  return jsonAnswer(201, { url: `${call.service.url}/c/${id}`, id });
}

/** An endpoint that shows the client a record of the taxpayer. */
function showing(recordOf: NonNullable<Endpoint['recordOf']>) {
  const answer: Endpoint['answer'] = (call) => {
    const refusal = clientRefusal(call) ?? readRefusal(call);
    if (refusal) return refusal;
    const taxpayer = call.service.state.taxpayer(call.route.taxpayerId);
    return taxpayer ? jsonAnswer(200, recordOf(taxpayer)) : errorAnswer(404, 'No such taxpayer');
  };
  return { answer, recordOf };
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

function refreshJob(call: ApiCall): Answer {
  const refusal = taxpayerRefusal(call);
  if (refusal) return refusal;
  const job = call.service.state.readJob(call.route.taxpayerId, call.route.jobId);
  if (!job) return errorAnswer(404, 'No such refresh job');
  const { status, jobId, taxpayerId, name } = job;
  return jsonAnswer(200, { status, jobId, taxpayerId, name });
}

/** For a call with the credentials of the client. */
function clientRefusal({ headers, service }: ApiCall): Answer | undefined {
  const expected = `Bearer ${Buffer.from(`${service.clientId}:${service.clientSecret}`).toString('base64')}`;
  if (headers.authorization === expected) return undefined;
  return errorAnswer(401, 'The client credentials are missing or wrong');
}

/** For a reading call with the access token of a taxpayer. */
function taxpayerRefusal(call: ApiCall): Answer | undefined {
  const { authorization } = call.headers;
  if (!authorization) return errorAnswer(401, 'The access token is missing');
  const refusal = readRefusal(call);
  if (refusal) return refusal;
  const taxpayer = call.service.state.taxpayer(call.route.taxpayerId);
  if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
  if (authorization === `Bearer ${taxpayer.accessToken}`) return undefined;
  return errorAnswer(401, 'The access token is not that of the taxpayer');
}

function readRefusal({ headers, body, service }: ApiCall): Answer | undefined {
  const version = headers['service-api-version'] ?? service.apiVersion;
  if (version !== service.apiVersion) return errorAnswer(400, 'Service-API-Version is not supported');
  return body === '' ? undefined : errorAnswer(400, 'The endpoint takes no body');
}
