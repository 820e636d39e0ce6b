import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { holderOf } from '../auth/caller.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { requestIdOf, writeRefusal } from '../http/answering.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { forEachAnswer, ResultStream } from '../operations/ResultStream.js';
import { admitStream, interruption, type LiveOptions } from './admitStream.js';
import { CallbackPoster } from './CallbackPoster.js';

export interface CallbackEndpointOptions extends LiveOptions {
  /** Origins that callbacks may go to. */
  readonly callbackOrigins: readonly string[];
}

const shortText = z.string().min(1).max(1024);

/** `extensions.subscription` of Apollo Router's HTTP callback protocol, version 1.0. */
const callbackRequest = z.object({
  callbackUrl: z.url().max(2048),
  subscriptionId: shortText,
  verifier: shortText,
  heartbeatIntervalMs: z.number().int().min(0).max(3_600_000).default(5000),
});

/** The answer to the request itself. */
const accepted = '{"data":null}';

/**
 * Subscriptions whose results are posted to the router that asked. Apollo Server's own plugin posts to whatever address a
 * request names; here the address must be of an allowed origin, and the request from the router.
 */
export class CallbackEndpoint {
  readonly #options: CallbackEndpointOptions;

  constructor(options: CallbackEndpointOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(request);
    try {
      await this.#serve(request, response, requestId);
    } catch (error) {
      writeRefusal(response, requestId, this.#options.pipeline.refuse(error, { requestId }, 'callback'));
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { pipeline, streams, ledger } = this.#options;
    const identity = await admitStream(request, this.#options);
    if (identity.fromRouter === false) throw forbidden('Callback subscriptions answer to the router only');
    const holder = holderOf(identity.caller);
    const asked = await pipeline.admit(identity, () => readGraphQLRequest(request, holder, this.#options));
    const callback = this.#callbackOf(asked.extensions?.['subscription']);
    const left = new AbortController();
    const operation = pipeline.prepare(asked, { ...identity, requestId, signal: left.signal }, 'callback');
    const poster = new CallbackPoster(callback);
    const isRefused = operation.work.by === 'refusal';
    // Nothing is posted, and nothing runs, until the router has confirmed the subscription.
    if (!isRefused && !(await poster.check())) {
      throw badRequest('The callback address did not confirm the subscription');
    }
    const leavePlace = ledger.take('streams', holder);
    const result = await pipeline.runLive(operation);
    if (!(result instanceof ResultStream)) leavePlace();
    if (isRefused && !(result instanceof ResultStream)) return writeRefusal(response, requestId, result);
    response.writeHead(200, [
      ...['x-request-id', requestId, 'cache-control', 'no-store', 'subscription-protocol', 'callback/1.0'],
      ...['content-type', 'application/json; charset=utf-8', 'content-length', `${accepted.length}`],
    ]);
    response.end(accepted);
    if (!(result instanceof ResultStream)) {
      return poster.complete(result.errors.length > 0 ? result.errors : undefined);
    }
    const stop = () => {
      left.abort();
      poster.stop();
    };
    const remove = streams.add('callback', { shutDown: stop, destroy: stop });
    poster.startHeartbeat(stop);
    try {
      await forEachAnswer(result, left.signal, async (answer) => {
        if (!(await poster.next(answer))) stop();
      });
      if (!left.signal.aborted) await poster.complete();
      else if (streams.draining) await poster.complete([interruption]);
    } finally {
      poster.stop();
      remove();
      leavePlace();
    }
  }

  /** @throws GatewayError BAD_USER_INPUT or FORBIDDEN */
  #callbackOf(extension: unknown): z.output<typeof callbackRequest> {
    const parsed = callbackRequest.safeParse(extension);
    if (!parsed.success) {
      const path = ['extensions.subscription', ...(parsed.error.issues[0]?.path ?? [])].join('.');
      throw badInput(path, 'is missing or malformed');
    }
    const url = new URL(parsed.data.callbackUrl);
    if (!this.#options.callbackOrigins.includes(url.origin) || url.username !== '' || url.password !== '') {
      throw forbidden('This callback origin is not allowed (CALLBACK_ORIGINS)');
    }
    return parsed.data;
  }
}

function forbidden(message: string): GatewayError {
  return new GatewayError('FORBIDDEN', message, { httpStatus: 403 });
}
