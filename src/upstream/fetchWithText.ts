import type { ClientRequest } from 'node:http';
import nodeFetch, { type RequestInit, type Response } from 'node-fetch';

/** What Node's client asks of an agent; it is missing in the types. */
export interface RequestAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
}

/**
 * node-fetch, which sends a body of text as the end of its request. By itself it would pipe the body through streams, and
 * that costs more than the rest of sending. With a body, `agent` is a plain object.
 */
export function fetchWithText(url: string, init: RequestInit & { readonly body: string | null }): Promise<Response> {
  const { body, agent } = init;
  if (body === null) return nodeFetch(url, init);
  return nodeFetch(url, { ...init, body: null, agent: endingWith(body, agent as never) as never });
}

function endingWith(body: string, agent: RequestAgent): RequestAgent {
  const addRequest: RequestAgent['addRequest'] = (request, ...rest) => {
    const { end } = request;
    request.setHeader('content-length', Buffer.byteLength(body)); // node-fetch takes it for a request without a body
    request.end = (() => end.call(request, body, 'utf8')) as never;
    agent.addRequest(request, ...rest);
  };
  return { ...agent, addRequest };
}
