import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { Sandbox } from './sandbox.js';

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** Throws when the body is not JSON. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly agent?: Agent;
  readonly timeoutMs?: number;
}

/** A plain client of the service: it follows, decompresses and normalises nothing. Calls go to the present `sandbox()`. */
export function sandboxClient(sandbox: () => Sandbox) {
  const call = (path: string, sent: Sent = {}) => send(sandbox().url, path, sent);
  const asClient = () => {
    const { clientId, clientSecret } = sandbox();
    return { authorization: `Bearer ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` };
  };
  return {
    call,
    asClient,

    createLink(input: unknown = {}): Promise<Received> {
      const headers = { ...asClient(), 'content-type': 'application/json' };
      const body = typeof input === 'string' ? input : JSON.stringify(input);
      return call('/client-links', { method: 'POST', headers, body });
    },

    readToken(id: string, sent: Sent = {}): Promise<Received> {
      return call(`/auth/tax-payer/${id}/token`, { ...sent, headers: { ...asClient(), ...sent.headers } });
    },

    readJob({ taxpayerId, jobId }: { readonly taxpayerId: string; readonly jobId: string }): Promise<Received> {
      const token = sandbox().control.taxpayer(taxpayerId)?.accessToken;
      return call(`/tax-payer/${taxpayerId}/refresh/${jobId}`, { headers: { authorization: `Bearer ${token}` } });
    },
  };
}

function send(
  url: string,
  path: string,
  { method = 'GET', headers = {}, body, agent, timeoutMs }: Sent,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const signal = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
    const sent = httpRequest({ hostname, port, path, method, headers, agent: agent ?? false, signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve(receivedOf(status, headers, Buffer.concat(chunks)));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

function receivedOf(status: number, headers: IncomingHttpHeaders, bytes: Buffer): Received {
  const text = bytes.toString();
  return {
    status,
    headers,
    bytes,
    text,
    get json() {
      return JSON.parse(text) as Record<string, unknown>;
    },
  };
}
