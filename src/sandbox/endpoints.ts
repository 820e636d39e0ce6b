import type { IncomingMessage } from 'node:http';
import type { sandboxClient } from '../config/config.js';
import { type Answer, errorAnswer, jsonAnswer } from './answers.js';
import { hostedPage } from './hostedPage.js';
import type { SandboxState, SandboxTaxpayer } from './state.js';

/** Method and path of each endpoint of the service, and of the page on which a taxpayer gives consent. */
const requestLines = {
  createClientLink: /^POST \/client-links$/,
  taxpayerToken: /^GET \/auth\/tax-payer\/(?<taxpayerId>[^/]+)\/token$/,
  refreshJob: /^GET \/tax-payer\/(?<taxpayerId>[^/]+)\/refresh\/(?<jobId>[^/]+)$/,
  hostedPage: /^(?:GET|POST) \/c\/(?<linkId>[^/]+)\/?$/,
};
type Endpoint = keyof typeof requestLines;
export type ApiEndpoint = Exclude<Endpoint, 'hostedPage'>;

const noIds = { taxpayerId: '', jobId: '', linkId: '' };

/** Where a request goes; `unknown` is none of the service's endpoints. The ids are empty where the path has none. */
export type Route = { readonly endpoint: Endpoint | 'unknown' } & typeof noIds;

/** A request as the sandbox understands it, and what it is answered from. */
export interface Received {
  readonly route: Route;
  readonly request: IncomingMessage;
  readonly body: string;
  readonly service: typeof sandboxClient & {
    readonly state: SandboxState;
    /** Without trailing slash. */
    readonly url: string;
  };
}

/** Finds the endpoint of a request. With double or encoded slashes, or what is not UTF-8, it is `unknown`. */
export function routeOf({ method, url = '' }: IncomingMessage): Route {
  let path = '';
  try {
    path = decodeURIComponent(url.replace(/\?.*/s, '').replace(/%2f/gi, '//'));
  } catch {
    // Not UTF-8.
  }
  for (const [endpoint, requestLine] of Object.entries(requestLines)) {
    const ids = requestLine.exec(`${method} ${path}`);
    if (ids) return { endpoint: endpoint as Endpoint, ...noIds, ...ids.groups };
  }
  return { endpoint: 'unknown', ...noIds };
}

/** Carries the request out and gives the right answer. */
export function answerTo(received: Received): Answer {
  const { route, request, body, service } = received;
  const { endpoint } = route;
  if (endpoint === 'unknown') return errorAnswer(404, 'No such path');
  if (endpoint === 'hostedPage') return hostedPage(service.state, route.linkId, request.method === 'POST' ? body : '');
  const { authorization } = request.headers;
  const clientBearer = `Bearer ${Buffer.from(`${service.clientId}:${service.clientSecret}`).toString('base64')}`;
  if (endpoint !== 'refreshJob' && authorization !== clientBearer) {
    return errorAnswer(401, 'The client credentials are missing or wrong');
  }
  if (endpoint === 'createClientLink') return createClientLink(received);
  const taxpayer = service.state.taxpayers.get(route.taxpayerId);
  if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
  const failure = taxpayer.failures[endpoint];
  if (failure) return failure;
  if (endpoint === 'taxpayerToken') return tokenRecord(taxpayer);
  if (authorization !== `Bearer ${taxpayer.accessToken}`) {
    return errorAnswer(401, 'The access token is missing, or not that of the taxpayer');
  }
  const job = service.state.readJob(taxpayer.id, route.jobId);
  if (!job) return errorAnswer(404, 'No such refresh job');
  const { status, jobId, taxpayerId, name } = job;
  return jsonAnswer(200, { status, jobId, taxpayerId, name });
}

/** What the sandbox reads of the body of a client link; the tests check all of it. */
interface LinkInput {
  readonly metadata?: SandboxTaxpayer['metadata'];
  readonly settings?: {
    readonly prefillData?: {
      readonly personalInfo?: { readonly firstName?: string; readonly lastName?: string };
      readonly businessInfo?: { readonly name?: string };
    };
  };
}

function createClientLink({ body, service }: Received): Answer {
  const { metadata = {}, settings }: LinkInput = JSON.parse(body);
  const { personalInfo: person, businessInfo: business } = settings?.prefillData ?? {};
  const name = [person?.firstName, person?.lastName].filter(Boolean).join(' ') || business?.name;
  const taxpayer = service.state.addTaxpayer({ metadata, ...(name && { name }) });
  const id = crypto.randomUUID();
  service.state.links.set(id, taxpayer);
  return jsonAnswer(201, { url: `${service.url}/c/${id}`, id });
}

function tokenRecord(taxpayer: SandboxTaxpayer): Answer {
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
