/** The endpoints of the service interface. */
export const apiEndpoints = ['createClientLink', 'taxpayerToken', 'refreshJob'] as const;
export type ApiEndpoint = (typeof apiEndpoints)[number];

/** What a received request is counted as; `hostedPage` is a person in the taxpayer flow, `unknown` is off the contract. */
export type EndpointName = ApiEndpoint | 'hostedPage' | 'unknown';

export type Route =
  | { readonly endpoint: 'createClientLink' }
  | { readonly endpoint: 'taxpayerToken'; readonly taxpayerId: string }
  | { readonly endpoint: 'refreshJob'; readonly taxpayerId: string; readonly jobId: string }
  | { readonly endpoint: 'hostedPage'; readonly linkId: string; readonly action: string | undefined }
  | { readonly endpoint: 'unknown'; readonly problem: 'no-such-path' | 'bad-encoding' }
  | { readonly endpoint: 'unknown'; readonly problem: 'wrong-method'; readonly allow: string };

const createClientLink: Route = { endpoint: 'createClientLink' };
const noSuchPath: Route = { endpoint: 'unknown', problem: 'no-such-path' };

/**
 * Finds the endpoint of a request target. The path is taken as received: dot segments are not resolved and double
 * slashes not merged but `unknown`, so a client whose ids change the path is caught.
 */
export function routeOf(method: string, target: string): Route {
  const query = target.indexOf('?');
  const parts = (query < 0 ? target : target.slice(0, query)).split('/');
  const [root, first, second, third, fourth] = parts;
  if (root !== '' || parts.some((part, index) => index > 0 && changesPath(part))) return noSuchPath;
  if (first === 'client-links' && parts.length === 2) return only('POST', method, createClientLink);
  if (first === 'auth' && second === 'tax-payer' && third && fourth === 'token' && parts.length === 5) {
    const taxpayerId = decoded(third);
    return taxpayerId === undefined ? badEncoding() : only('GET', method, { endpoint: 'taxpayerToken', taxpayerId });
  }
  if (first === 'tax-payer' && second && third === 'refresh' && fourth && parts.length === 5) {
    const taxpayerId = decoded(second);
    const jobId = decoded(fourth);
    if (taxpayerId === undefined || jobId === undefined) return badEncoding();
    return only('GET', method, { endpoint: 'refreshJob', taxpayerId, jobId });
  }
  if (first === 'c' && second && parts.length <= 4) {
    return only(third ? 'POST' : 'GET', method, { endpoint: 'hostedPage', linkId: second, action: third });
  }
  return noSuchPath;
}

/** Empty and dot segments, which servers and proxies resolve in their own ways, `%2e` included. */
function changesPath(segment: string): boolean {
  return segment === '' || (segment.length <= 6 && /^(\.|%2e){1,2}$/i.test(segment));
}

function only(allow: string, method: string, route: Route): Route {
  return method === allow ? route : { endpoint: 'unknown', problem: 'wrong-method', allow };
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function badEncoding(): Route {
  return { endpoint: 'unknown', problem: 'bad-encoding' };
}
