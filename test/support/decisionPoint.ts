import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { decide } from '../../examples/decision-point/decisionPoint.js';
import { serve } from './serve.js';

interface Asked {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly subject: { readonly type: string; readonly id: string; readonly properties: Record<string, unknown> };
    readonly action?: { readonly name: string };
    readonly resource?: { readonly type: string; readonly id: string };
    readonly evaluations?: readonly { readonly action: { readonly name: string }; readonly resource: { id: string } }[];
  };
}

type Decided = { readonly decision: unknown } | { readonly evaluations: readonly unknown[] };

/** Ways in which a decision point misbehaves. Each is given the right answer (`decided`) and a text to leak (`words`). */
export const misbehaviours = {
  'does not answer': () => {},
  'stops in mid-answer': (response) => void response.writeHead(200, { 'content-length': 100 }).write('{"decision":'),
  'cuts the connection': (response) => void response.destroy(),
  'answers 500': (response, _, words) => end(response, 500, JSON.stringify({ decision: true, words })),
  'answers 403': (response) => end(response, 403, '"no"'),
  redirects: (response) => void response.writeHead(307, { location: '/elsewhere' }).end(),
  'answers 200 with HTML': (response, _, words) => end(response, 200, `<html>{"decision":true}${words}</html>`),
  'answers with nothing': (response) => end(response, 200, ''),
  'says true as text': (response, _, words) => end(response, 200, JSON.stringify(everyDecision('true', { words }))),
  'leaves the decision out': (response) => end(response, 200, '{"evaluations":[{}],"context":{}}'),
  'decides too little': (response) => end(response, 200, '{"evaluations":[]}'),
  'decides too much': (response) =>
    end(response, 200, JSON.stringify({ evaluations: Array(700).fill({ decision: true }) })),
  'sends more than a megabyte': (response) =>
    end(response, 200, JSON.stringify({ decision: true, x: 'x'.repeat(2 ** 21) })),
} as const satisfies Readonly<Record<string, (response: ServerResponse, decided: Decided, words: string) => void>>;

export type Misbehaviour = keyof typeof misbehaviours;

export type TestDecisionPoint = Awaited<ReturnType<typeof startTestDecisionPoint>>;

/** The example decision point over lists in memory. It records its calls, can misbehave and can be down. */
export async function startTestDecisionPoint() {
  const lists: Record<string, string[]> = {};
  const asked: Asked[] = [];
  let misbehaviour: Misbehaviour | undefined;
  let words = 'words';
  let held: (() => void)[] | undefined;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked['body'];
    asked.push({ url: request.url ?? '', headers: request.headers, body });
    if (held) await new Promise<void>((resolve) => held?.push(resolve));
    const decided = decide(body, lists) as Decided;
    if (misbehaviour) misbehaviours[misbehaviour](response, decided, words);
    else end(response, 200, JSON.stringify({ ...decided, context: { reason: words } }));
  });
  const origin = await serve(server);
  return {
    url: `${origin}/pdp/`,
    /** Every call so far. */
    asked,
    allow(subject: string, taxpayers: readonly string[]) {
      lists[subject] = [...taxpayers];
    },
    behave(as: Misbehaviour | undefined) {
      misbehaviour = as;
    },
    /** Sets the text that it sends beside its decisions. */
    say(more: string) {
      words = more;
    },
    /** Accepts calls, but answers them only when the returned function is called. */
    hold(): () => void {
      const waiting: (() => void)[] = [];
      held = waiting;
      return () => {
        held = undefined;
        for (const release of waiting) release();
      };
    },
    async down() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    async up() {
      if (!server.listening) await once(server.listen(Number(new URL(origin).port), '127.0.0.1'), 'listening');
    },
  };
}

function everyDecision(decision: unknown, more: object = {}) {
  return { decision, ...more, evaluations: Array(2).fill({ decision, ...more }) };
}

function end(response: ServerResponse, status: number, text: string) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}
