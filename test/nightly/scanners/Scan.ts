import { setTimeout as delay } from 'node:timers/promises';

/** What a scanner is pointed at, with the token of a caller: the gateway itself, or a router in front of it. */
export interface Target {
  readonly origin: string;
  readonly authorization: string;
}

export interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** The body where it is JSON; of a GraphQL answer its parts. */
  readonly json: GraphQLBody;
}

export type GraphQLBody = Readonly<{
  data?: Readonly<Record<string, unknown>> | null;
  errors?: readonly { readonly message: string; readonly extensions?: Readonly<Record<string, unknown>> }[];
}>;

/** Sends a request, and again after a second when its caller has had its share of a busy process: that is not what is tried. */
export async function send(target: Target, request: Request): Promise<Reply> {
  for (;;) {
    const reply = await sendOnce(target, request);
    if (!reply.text.includes('Your operations take too much of the time')) return reply;
    await delay(1000);
  }
}

async function sendOnce(
  target: Target,
  { method = 'POST', path = '/graphql', headers, body }: Request,
): Promise<Reply> {
  const all = { authorization: target.authorization, ...headers };
  const response = await fetch(target.origin + path, { method, headers: all, redirect: 'manual', body: body ?? null });
  const text = await response.text();
  return { status: response.status, text, json: jsonIn(text) };
}

/** A POST of a document as JSON. */
export function asJson(query: string, more: object = {}): Request {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, ...more }) };
}

export async function ask(target: Target, query: string): Promise<Reply> {
  return send(target, asJson(query));
}

/** The different codes of the errors in a reply. */
export function codesIn({ json: { errors = [] } }: Reply): string[] {
  return [...new Set(errors.map(({ extensions }) => String(extensions?.['code'])))].sort();
}

/** `n` texts with blanks between them. */
export function times(n: number, text: (index: number) => string): string {
  return Array.from({ length: n }, (_, index) => text(index)).join(' ');
}

function jsonIn(text: string): GraphQLBody {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
