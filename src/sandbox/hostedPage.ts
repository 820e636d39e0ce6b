import { type Answer, answerOf } from './answers.js';
import type { SandboxState, SandboxTaxpayer } from './state.js';

/** The buttons of each status: the status that a button leads to, and what it says. */
const buttons: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  CREATED: { CONSENT_RECEIVED: 'Give consent' },
  CONSENT_RECEIVED: { TAX_AUTHORIZATION_SUBMITTED: 'Sign and submit' },
  TAX_AUTHORIZATION_SUBMITTED: { AUTHORIZED: 'Authority accepts', REJECTED: 'Authority declines' },
  AUTHORIZED: { refresh: 'Start a data refresh' },
};

/**
 * The hosted flow behind a client link: where the taxpayer is, a button for each next step, and the query to follow along.
 * Plain HTML, no script. Only the buttons of the present status count: one from an old tab changes nothing.
 */
export function hostedPage(state: SandboxState, linkId: string, form: string): Answer {
  const taxpayer = state.links.get(linkId);
  if (!taxpayer) {
    return html(404, '<p>There is no such link. The sandbox forgets its links when it stops: create a new one.</p>');
  }
  const steps = buttons[taxpayer.status] ?? {};
  if (form === '') return html(200, contentOf(taxpayer, steps));
  const step = new URLSearchParams(form).get('step') ?? '';
  if (Object.hasOwn(steps, step)) {
    if (step !== 'refresh') taxpayer.status = step;
    else taxpayer.jobId = state.addJob({ taxpayerId: taxpayer.id }).jobId;
  }
  // See Other, so that reloading the page does not send the form again.
  return answerOf(303, 'text/plain', '', { location: `/c/${linkId}`, 'cache-control': 'no-store' });
}

// The icon keeps browsers from asking for /favicon.ico, which the policy below would refuse.
const head =
  '<link rel="icon" href="data:,"><style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui;max-width:40rem;margin:auto;padding:1rem}dt{font-weight:600}dd{margin:0 0 .5rem}button{font:inherit;padding:.6rem 1rem}pre{white-space:pre-wrap;border:1px solid;padding:1rem}</style>';
const headers = {
  'content-security-policy':
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
};

function html(status: number, content: string): Answer {
  const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tax authorization – sandbox</title>
${head}
<main>
<h1>Tax authorization</h1>
${content}
</main>
</html>
`;
  return answerOf(status, 'text/html; charset=utf-8', page, headers);
}

function contentOf({ id, name, status, jobId }: SandboxTaxpayer, steps: Readonly<Record<string, string>>): string {
  const facts = { name, 'taxpayer-id': id, 'taxpayer-status': status, 'job-id': jobId ?? 'none' };
  const rows = Object.entries(facts).map(
    ([fact, value]) => `<dt>${fact.replace('-', ' ')}</dt><dd id="${fact}">${escaped(value)}</dd>`,
  );
  const choices = Object.entries(steps).map(([step, words]) => `<button name="step" value="${step}">${words}</button>`);
  const ofTaxpayer = `  taxpayerToken(taxpayerId: "${id}", maxAgeSeconds: 60) {\n    name\n    status\n  }\n`;
  const ofJob = `  refreshJob(taxpayerId: "${id}", jobId: "${jobId}") {\n    name\n    status\n    observedAt\n  }\n`;
  return `<p>In this sandbox you are both the taxpayer and the tax authority.</p>
<dl>${rows.join('')}</dl>
<h2>Next step</h2>
<form method="post">${choices.join(' ') || 'There is nothing left to do.'}</form>
<h2>Follow along in GraphQL</h2>
<p>A job is completed 15 seconds after it was first queried. The gateway may show an old status for up to a minute.</p>
<pre tabindex="0">${escaped(`{\n${ofTaxpayer}${jobId ? ofJob : ''}}`)}</pre>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
