import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { holderOf } from '../auth/caller.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import type { Accepted } from '../http/mediaTypes.js';
import { writeRefusal } from '../http/refusal.js';
import { CallbackPoster } from './CallbackPoster.js';
import { admitStream, answering, type LiveEndpointOptions } from './liveRequest.js';
import { ResultStream } from './ResultStream.js';

export interface CallbackEndpointOptions extends LiveEndpointOptions {
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

/** More often than this nobody needs to hear that we live, in milliseconds. */
const shortestHeartbeatMs = 500;

/**
 * Subscriptions whose results are posted to the router that asked, so that no connection stays open. Apollo Server's own
 * plugin posts to whatever address a request names; here the address must be of an allowed origin, the request from the
 * router, and nothing is posted before both are known.
 */
export class CallbackEndpoint {
  readonly #options: CallbackEndpointOptions;

  constructor(options: CallbackEndpointOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations, streams, ledger, requestLimits } = this.#options;
    return answering({ request, response, operations }, async (requestId) => {
      const identity = await admitStream(request, this.#options);
      if (identity.fromRouter === false) {
        throw new GatewayError('FORBIDDEN', 'Callback subscriptions answer to the router only', { httpStatus: 403 });
      }
      const { method: _, ...parameters } = await readGraphQLRequest(request, requestLimits);
      const callback = this.#callbackOf(parameters.extensions?.['subscription']);
      const left = new AbortController();
      const facts = { ...identity, requestId, signal: left.signal };
      const operation = await operations.prepare(parameters, facts, 'callback');
      if (operation.kind === 'refused') {
        const { status, errors } = operation;
        writeRefusal(response, requestId, { status, errors: errors.map(({ formatted }) => formatted) });
        return;
      }
      const poster = new CallbackPoster(callback);
      // The router says first that it knows the subscription; who does not is not sent anything.
      if (!(await poster.check())) {
        throw new GatewayError('BAD_USER_INPUT', 'The callback address did not confirm the subscription', {
          httpStatus: 400,
        });
      }
      const leavePlace = ledger.take('streams', holderOf(identity.caller));
      const result = await operations.perform(operation);
      response.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': accepted.length,
        'subscription-protocol': 'callback/1.0',
      });
      response.end(accepted);
      if (!(result instanceof ResultStream)) {
        leavePlace();
        await poster.complete(result.errors);
        return;
      }
      const stop = () => {
        left.abort();
        void result.return();
        poster.stop();
      };
      const remove = streams.add('callback', { shutDown: stop, destroy: stop });
      poster.startHeartbeat(Math.max(callback.heartbeatIntervalMs, shortestHeartbeatMs), stop);
      try {
        for await (const each of result) if (!(await poster.next(each))) stop();
        if (!left.signal.aborted) await poster.complete();
        else if (streams.draining) await poster.complete([{ message: 'The gateway is shutting down' }]);
      } finally {
        poster.stop();
        remove();
        leavePlace();
      }
    });
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
      throw new GatewayError('FORBIDDEN', 'This callback origin is not allowed (CALLBACK_ORIGINS)', {
        httpStatus: 403,
      });
    }
    return parsed.data;
  }
}

/** Whether a request asks for a subscription in this form. */
export function wantsCallback({ ranges }: Accepted): boolean {
  return ranges.some(({ parameters }) => 'callbackspec' in parameters);
}
