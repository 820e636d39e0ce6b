import type { ServerResponse } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { badInput, GatewayError } from '../errors/errors.js';
import { type RateLimit, rateLimitHeaders, writeRefusal } from '../http/answering.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { forEachAnswer, ResultStream } from '../operations/ResultStream.js';
import { admitStream, type Serve } from './admitStream.js';
import { CallbackPoster, type CallbackTarget, callbackTarget } from './CallbackPoster.js';
import { interruption, shuttingDown } from './draining.js';
import type { LiveOptions } from './LiveOptions.js';
import type { OpenStreams } from './OpenStreams.js';

/**
 * Subscriptions whose results are posted to the router that asked. Apollo Server's own plugin posts to any address a
 * request names; here the address must be of an allowed origin, and the request must come from the router.
 */
export function callbackEndpoint(options: LiveOptions): Serve {
  const { pipeline, streams, ledger } = options;
  return async (request, response, visit) => {
    const { requestId } = visit.known;
    const identity = await admitStream(request, visit, options);
    if (identity.fromRouter === false) throw forbidden('Only the router may ask for callback subscriptions');
    const holder = holderOf(identity.caller);
    const read = () => readGraphQLRequest(request, holder, options);
    const asked = visit.asked ?? (await pipeline.admit(identity, read));
    const target = targetIn(asked.extensions?.['subscription'], options.callbackOrigins);
    const left = new AbortController();
    const operation = pipeline.prepare(asked, { ...identity, ...visit.known, signal: left.signal }, 'callback');
    const poster = new CallbackPoster(target, options.tracing?.onCallback);
    const isRefused = operation.work.by === 'refusal';
    if (!isRefused) await confirm(poster, streams);
    const leavePlace = ledger.take('streams', holder);
    const result = await pipeline.runLive(operation);
    const rateLimit = pipeline.rateLimitOf(identity);
    if (!(result instanceof ResultStream)) {
      leavePlace();
      if (isRefused) return writeRefusal(response, requestId, result, rateLimit);
      writeAccepted(response, requestId, rateLimit);
      return poster.complete(result.errors.length > 0 ? result.errors : undefined);
    }
    if (streams.draining) {
      leavePlace();
      void result.return();
      throw shuttingDown;
    }
    writeAccepted(response, requestId, rateLimit);
    await postAnswers(result, poster, left, streams).finally(leavePlace);
  };
}

/** Nothing is posted, and nothing runs, until the router has confirmed the subscription. @throws GatewayError */
async function confirm(poster: CallbackPoster, streams: OpenStreams): Promise<void> {
  if (!(await poster.check())) throw badRequest('The callback address did not confirm the subscription', 400);
  // The process may have begun to drain while we waited: a stream would end at once, and look complete.
  if (streams.draining) throw shuttingDown;
}

/** Answers the request itself: results go to the callback address. */
function writeAccepted(response: ServerResponse, requestId: string, rateLimit: RateLimit | undefined): void {
  const body = '{"data":null}';
  response.writeHead(200, [
    ...(rateLimit ? rateLimitHeaders(rateLimit) : []),
    ...['x-request-id', requestId, 'cache-control', 'no-store', 'subscription-protocol', 'callback/1.0'],
    ...['content-type', 'application/json; charset=utf-8', 'content-length', `${body.length}`],
  ]);
  response.end(body);
}

/** Posts each answer and then the end, unless the router has gone. `left` aborts when it has, or when the process drains. */
async function postAnswers(answers: ResultStream, poster: CallbackPoster, left: AbortController, streams: OpenStreams) {
  const stop = () => {
    left.abort();
    poster.stop();
  };
  const remove = streams.add('callback', { shutDown: stop, destroy: stop });
  poster.startHeartbeat(stop);
  try {
    await forEachAnswer(answers, left.signal, async (answer) => {
      if (!(await poster.next(answer))) stop();
    });
    if (!left.signal.aborted) await poster.complete();
    else if (streams.draining) await poster.complete([interruption]);
  } finally {
    poster.stop();
    remove();
  }
}

/** @throws GatewayError BAD_USER_INPUT or FORBIDDEN */
function targetIn(extension: unknown, origins: readonly string[]): CallbackTarget {
  const parsed = callbackTarget.safeParse(extension);
  if (!parsed.success) {
    const path = ['extensions.subscription', ...(parsed.error.issues[0]?.path ?? [])].join('.');
    throw badInput(path, 'is missing or malformed: expected as in the callback protocol (callback/1.0)');
  }
  const url = new URL(parsed.data.callbackUrl);
  if (!origins.includes(url.origin) || url.username !== '' || url.password !== '') {
    throw forbidden('This callback origin is not allowed (CALLBACK_ORIGINS)');
  }
  return parsed.data;
}

function forbidden(message: string): GatewayError {
  return new GatewayError('FORBIDDEN', message, { httpStatus: 403 });
}
