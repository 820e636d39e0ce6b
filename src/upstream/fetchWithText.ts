import type { ClientRequest } from 'node:http';
import nodeFetch, { type RequestInit, type Response } from 'node-fetch';

/** The method that Node's HTTP client calls on an agent; the types lack it. */
export interface RequestAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
}

/**
 * node-fetch, but a text body is passed to `request.end`. By itself node-fetch pipes the body through streams, which costs
 * more than the rest of sending. With a body, `agent` must be a plain object.
 */
export function fetchWithText(url: string, init: RequestInit & { readonly body: string | null }): Promise<Response> {
  const { body, agent } = init;
  if (body === null) return nodeFetch(url, init);
  return nodeFetch(url, { ...init, body: null, agent: endingWith(body, agent as never) as never });
}

function endingWith(body: string, agent: RequestAgent): RequestAgent {
  const addRequest: RequestAgent['addRequest'] = (request, ...rest) => {
    const { end } = request;
    request.setHeader('content-length', Buffer.byteLength(body)); // node-fetch sees a request without a body
    request.end = (() => end.call(request, body, 'utf8')) as never;
    agent.addRequest(request, ...rest);
  };
  return { ...agent, addRequest };
}
