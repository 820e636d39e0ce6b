import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { unreachable } from '../errors/errors.js';
import { type Answer, errorAnswer, jsonAnswer } from './Answer.js';
import type { Route } from './routeOf.js';
import type { ClientLinkSettings, SandboxJob, SandboxState, SandboxTaxpayer } from './SandboxState.js';

export type ApiRoute = Extract<Route, { endpoint: 'createClientLink' | 'taxpayerToken' | 'refreshJob' }>;

export interface ApiRequest {
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface RestApiOptions {
  readonly state: SandboxState;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly apiVersion: string;
  /** Where the hosted pages are, without trailing slash; asked when needed because the port is known late. */
  readonly dashboardUrl: () => string;
}

const text = z.string();
const texts = z.array(text);
const clientLinkBody = z.strictObject({
  metadata: z.record(text, z.unknown()).optional(),
  settings: z
    .strictObject({
      flowType: text.optional(),
      transcripts: z
        .strictObject({
          ACTR: texts,
          RECA: texts,
          WAID: texts,
          VENF: texts,
          W2: texts,
          '1095-A': texts,
          NOTICE: texts,
        })
        .partial()
        .optional(),
      prefillData: z
        .strictObject({
          personalInfo: z.strictObject({ firstName: text, lastName: text, ssn: text }).partial(),
          businessInfo: z.strictObject({ name: text, taxId: text, type: text, phone: text, title: text }).partial(),
          address: z.strictObject({ street: text, other: text, city: text, state: text, zip: text }).partial(),
        })
        .partial()
        .optional(),
    })
    .optional(),
});

/** The three endpoints of the interface, strict about everything the interface states. */
export class RestApi {
  readonly #options: RestApiOptions;
  #clientAuthorization: string;
  readonly #tokenAnswers = new WeakMap<SandboxTaxpayer, Answer>();
  readonly #jobAnswers = new WeakMap<SandboxJob, Answer>();

  constructor(options: RestApiOptions) {
    this.#options = options;
    this.#clientAuthorization = clientAuthorization(options.clientId, options.clientSecret);
  }

  /** From now on the old secret is refused. */
  setClientSecret(clientSecret: string): void {
    this.#clientAuthorization = clientAuthorization(this.#options.clientId, clientSecret);
  }

  answer(route: ApiRoute, request: ApiRequest): Answer {
    if (request.target.includes('?')) return errorAnswer(400, 'The endpoint takes no query string');
    switch (route.endpoint) {
      case 'createClientLink':
        return this.#createClientLink(request);
      case 'taxpayerToken':
        return this.#taxpayerToken(route.taxpayerId, request);
      case 'refreshJob':
        return this.#refreshJob(route.taxpayerId, route.jobId, request);
      default:
        return unreachable(route);
    }
  }

  #createClientLink({ headers, body }: ApiRequest): Answer {
    if (headers.authorization !== this.#clientAuthorization) return wrongCredentials();
    if (!/^application\/json *(;|$)/i.test(headers['content-type'] ?? '')) {
      return errorAnswer(415, 'The body must be application/json');
    }
    const input = parsedJson(body);
    if (input === undefined) return errorAnswer(400, 'The body is not JSON');
    const checked = clientLinkBody.safeParse(input);
    if (!checked.success) {
      const where = checked.error.issues.map((issue) => `${issue.path.join('.') || 'body'} (${issue.code})`);
      return errorAnswer(422, `The body has members that are not accepted: ${where.join(', ')}`);
    }
    // The metadata is kept as it was sent; the checked copy may have lost odd keys such as __proto__.
    const { metadata = {} } = input as { metadata?: Record<string, unknown> };
    const settings: ClientLinkSettings = checked.data.settings ?? {};
    const link = this.#options.state.addLink(settings, metadata);
    return jsonAnswer(201, { url: `${this.#options.dashboardUrl()}/c/${link.id}`, id: link.id });
  }

  #taxpayerToken(taxpayerId: string, { headers, body }: ApiRequest): Answer {
    if (headers.authorization !== this.#clientAuthorization) return wrongCredentials();
    const problem = this.#readingProblem(headers, body);
    if (problem) return problem;
    const taxpayer = this.#options.state.taxpayer(taxpayerId);
    if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
    return this.#tokenAnswer(taxpayer);
  }

  #refreshJob(taxpayerId: string, jobId: string, { headers, body }: ApiRequest): Answer {
    const taxpayer = this.#options.state.taxpayer(taxpayerId);
    if (!headers.authorization) return errorAnswer(401, 'The access token is missing');
    const problem = this.#readingProblem(headers, body);
    if (problem) return problem;
    if (!taxpayer) return errorAnswer(404, 'No such taxpayer');
    if (headers.authorization !== `Bearer ${taxpayer.accessToken}`) {
      return errorAnswer(401, 'The access token is not that of the taxpayer');
    }
    const job = this.#options.state.readJob(taxpayerId, jobId);
    if (!job) return errorAnswer(404, 'No such refresh job');
    return this.#jobAnswer(job);
  }

  #readingProblem(headers: IncomingHttpHeaders, body: string): Answer | undefined {
    const version = headers['service-api-version'];
    if (version !== undefined && version !== this.#options.apiVersion) {
      return errorAnswer(400, 'Service-API-Version is not supported');
    }
    return body === '' ? undefined : errorAnswer(400, 'The endpoint takes no body');
  }

  #tokenAnswer(taxpayer: SandboxTaxpayer): Answer {
    const held = this.#tokenAnswers.get(taxpayer);
    if (held) return held;
    const answer = jsonAnswer(200, tokenRecord(taxpayer));
    this.#tokenAnswers.set(taxpayer, answer);
    return answer;
  }

  #jobAnswer(job: SandboxJob): Answer {
    const held = this.#jobAnswers.get(job);
    if (held) return held;
    const { status, jobId, taxpayerId, name } = job;
    const answer = jsonAnswer(200, { status, jobId, taxpayerId, name });
    this.#jobAnswers.set(job, answer);
    return answer;
  }
}

/** A taxpayer as the token endpoint shows it. */
export function tokenRecord(taxpayer: SandboxTaxpayer): Record<string, unknown> {
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

function clientAuthorization(clientId: string, clientSecret: string): string {
  return `Bearer ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
}

function wrongCredentials(): Answer {
  return errorAnswer(401, 'The client credentials are missing or wrong');
}

function parsedJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}
