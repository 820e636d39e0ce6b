import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import { clientLinkSettings, type SandboxState, type SandboxTaxpayer } from './SandboxState.js';

/** A request as the sandbox understands it, and what it is answered from. */
export interface Received {
  readonly route: Route;
  readonly request: IncomingMessage;
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

/** One endpoint of the service: where it is, whose credential a call has to carry, and how it answers. */
type Endpoint = { readonly path: string; readonly credential: 'client' | 'taxpayer' } & (
  | { readonly method: 'POST'; readonly answer: (received: Received) => Answer }
  | { readonly method: 'GET'; readonly answer: (received: Received, taxpayer: SandboxTaxpayer) => Answer }
);

/** The interface of the service. A new endpoint is one more entry here. */
const table = {
  createClientLink: { method: 'POST', path: '/client-links', credential: 'client', answer: createClientLink },
  taxpayerToken: {
    method: 'GET',
    path: '/auth/tax-payer/{taxpayerId}/token',
    credential: 'client',
    answer: tokenRecord,
  },
  refreshJob: {
    method: 'GET',
    path: '/tax-payer/{taxpayerId}/refresh/{jobId}',
    credential: 'taxpayer',
    answer: refreshJob,
  },
} satisfies Record<string, Endpoint>;

export type ApiEndpoint = keyof typeof table;
const endpoints: Readonly<Record<ApiEndpoint, Endpoint>> = table;
export const apiEndpoints = Object.keys(table) as ApiEndpoint[];

/** Where a request goes: a person in the taxpayer flow to `hostedPage`. The ids are empty where the path has none. */
export type Route =
  | (typeof noIds & { readonly endpoint: ApiEndpoint | 'hostedPage' })
  | (typeof noIds & { readonly endpoint: 'unknown'; readonly refusal: Answer });

const noIds = { taxpayerId: '', jobId: '', linkId: '', action: '' };

const routes = [
  ...apiEndpoints.map((endpoint) => ({ endpoint, method: table[endpoint].method, path: table[endpoint].path })),
  { endpoint: 'hostedPage' as const, method: 'GET', path: '/c/{linkId}/?' },
  { endpoint: 'hostedPage' as const, method: 'GET, POST', path: '/c/{linkId}/{action}' },
].map((route) => ({ ...route, pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) }));

/**
 * Finds the endpoint of a request. The path is taken as received: dot segments are not resolved and double slashes not merged
 * but `unknown`, so a client whose ids change the path is caught.
 */
export function routeOf({ method = '', url = '' }: IncomingMessage): Route {
  const path = url.replace(/\?.*/s, '');
  for (const { endpoint, method: allow, pattern } of routes) {
    const match = pattern.exec(path);
    if (!match) continue;
    const segments = Object.entries({ ...match.groups });
    if (segments.some(([, segment]) => /^(\.|%2e){1,2}$/i.test(segment))) break;
    try {
      const ids = Object.fromEntries(segments.map(([name, segment]) => [name, decodeURIComponent(segment)]));
      if (allow.split(', ').includes(method)) return { endpoint, ...noIds, ...ids };
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

/** Carries a call of the API out and gives the right answer. */
export function answerOfApi(called: ApiEndpoint, received: Received): Answer {
  const endpoint = endpoints[called];
  const { route, request, body, service } = received;
  const { authorization, 'service-api-version': version = service.apiVersion } = request.headers;
  const taxpayer = inEitherCase(route.taxpayerId, (id) => service.state.taxpayers.get(id));
  const clientBearer = `Bearer ${Buffer.from(`${service.clientId}:${service.clientSecret}`).toString('base64')}`;
  if (request.url?.includes('?')) return errorAnswer(400, 'The endpoint takes no query string');
  if (endpoint.credential === 'client' && authorization !== clientBearer) {
    return errorAnswer(401, 'The client credentials are missing or wrong');
  }
  if (endpoint.credential === 'taxpayer' && !authorization) return errorAnswer(401, 'The access token is missing');
  if (endpoint.method === 'POST') return endpoint.answer(received);
  if (version !== service.apiVersion) return errorAnswer(400, 'Service-API-Version is not supported');
  if (body !== '') return errorAnswer(400, 'The endpoint takes no body');
  if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
  if (endpoint.credential === 'taxpayer' && authorization !== `Bearer ${taxpayer.accessToken}`) {
    return errorAnswer(401, 'The access token is not that of the taxpayer');
  }
  return endpoint.answer(received, taxpayer);
}

const clientLinkBody = z.strictObject({
  metadata: z.record(z.string(), z.unknown()).optional(),
  settings: clientLinkSettings.optional(),
});

function createClientLink({ request, body, service }: Received): Answer {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) {
    return errorAnswer(415, 'The body must be application/json');
  }
  let input: unknown;
  try {
    input = JSON.parse(body);
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
  const { id } = service.state.addLink(checked.data.settings ?? {}, metadata);
  return jsonAnswer(201, { url: `${service.url}/c/${id}`, id });
}

function tokenRecord(_: Received, taxpayer: SandboxTaxpayer): Answer {
  return jsonAnswer(200, {
    access_token: taxpayer.accessToken,
    taxpayer_id: taxpayer.id,
    name: taxpayer.name,
    metadata: taxpayer.metadata,
    provider_id: taxpayer.providerId,
    created_at: taxpayer.createdAt,
    status: taxpayer.status,
  });
}

function refreshJob({ route, service }: Received, taxpayer: SandboxTaxpayer): Answer {
  const job = inEitherCase(route.jobId, (jobId) => service.state.readJob(taxpayer.id, jobId));
  if (!job) return errorAnswer(404, 'No such refresh job');
  const { status, jobId, taxpayerId, name } = job;
  return jsonAnswer(200, { status, jobId, taxpayerId, name });
}

/** Ids are UUIDs, which mean the same in upper and lower case. */
function inEitherCase<T>(id: string, find: (id: string) => T | undefined): T | undefined {
  return find(id) ?? find(id.toLowerCase());
}
