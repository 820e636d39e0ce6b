import { createHash } from 'node:crypto';
import { type Answer, answerOf, withHeaders } from './Answer.js';
import type { Route } from './endpoints.js';
import type { SandboxLink, SandboxState, SandboxTaxpayer } from './SandboxState.js';

interface Step {
  readonly title: string;
  /** Statuses in which it is the next step. */
  readonly from: readonly string[];
  /** What stands in its form. */
  readonly form: string;
  /** The status after the step, undefined when it starts a job instead; or what is missing in the form. */
  readonly take: (fields: URLSearchParams) => { readonly status?: string; readonly problem?: string };
}

const steps: Readonly<Record<string, Step>> = {
  consent: {
    title: 'Consent',
    from: ['CREATED'],
    form: '<p>I agree that my tax data is read for me.</p>\n<p><button type="submit">Give consent</button></p>',
    take: () => ({ status: 'CONSENT_RECEIVED' }),
  },
  sign: {
    title: 'Sign the tax-authorization form',
    from: ['CONSENT_RECEIVED'],
    form: `<p><label for="signature">Type your full name as signature</label><br>
<input type="text" id="signature" name="signature" autocomplete="name" required maxlength="200"></p>
<p><label><input type="checkbox" name="agreed" value="yes" required> I sign the tax-authorization form</label></p>
<p><button type="submit">Sign and submit</button></p>`,
    take: (fields) => {
      if (!fields.get('signature')?.trim()) return { problem: 'Type your full name to sign.' };
      if (fields.get('agreed') !== 'yes') return { problem: 'Tick the box to sign the tax-authorization form.' };
      return { status: 'TAX_AUTHORIZATION_SUBMITTED' };
    },
  },
  decide: {
    title: 'The authority decides',
    from: ['TAX_AUTHORIZATION_SUBMITTED'],
    form: `<p>In the sandbox you play the tax authority, too.</p>
<p><button type="submit" name="decision" value="accept">Authority accepts</button>
<button type="submit" name="decision" value="decline">Authority declines</button></p>`,
    take: (fields) => {
      const decision = fields.get('decision');
      if (decision === 'accept') return { status: 'AUTHORIZED' };
      if (decision === 'decline') return { status: 'REJECTED' };
      return { problem: 'Choose whether the authority accepts or declines.' };
    },
  },
  refresh: {
    title: 'Refresh the data',
    from: ['AUTHORIZED', 'COMPLETED'],
    form: '<p>The authorization is in place.</p>\n<p><button type="submit">Start a data refresh</button></p>',
    take: () => ({}),
  },
};

/**
 * The hosted flow behind a client link: shows where the taxpayer is, with the form of the next step, and takes the step of a
 * submitted form. Plain HTML, no script.
 */
export function hostedPage(state: SandboxState, { linkId, action }: Route, body: string): Answer {
  const link = state.link(linkId);
  const taxpayer = link && state.taxpayer(link.taxpayerId);
  if (!link || !taxpayer) return errorPage('This link does not exist');
  if (action === '') return page(link, taxpayer);
  const step = Object.hasOwn(steps, action) ? steps[action] : undefined;
  if (!step) return errorPage('This page does not exist');
  // A form sent twice, or from an old tab, changes nothing: the page shows where the taxpayer is by now.
  if (step.from.includes(taxpayer.status)) {
    const { status, problem } = step.take(new URLSearchParams(body));
    if (problem !== undefined) return page(link, taxpayer, problem);
    if (status === undefined) state.startJobFromLink(link);
    else state.updateTaxpayer(taxpayer.id, { status });
  }
  // See Other, so that reloading the page does not send the form again.
  return withHeaders(answerOf(303, 'text/plain', ''), { location: `/c/${link.id}`, 'cache-control': 'no-store' });
}

function page(link: SandboxLink, taxpayer: SandboxTaxpayer, problem?: string): Answer {
  const items = Object.values(steps).map(
    ({ title, from }) => `<li${from.includes(taxpayer.status) ? ' aria-current="step"' : ''}>${title}</li>`,
  );
  return htmlAnswer(
    problem === undefined ? 200 : 422,
    'Tax authorization',
    `<p>This is the sandbox of a taxpayer gateway. Nothing you enter here leaves this computer.</p>
${problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>`}
<h2>You</h2>
<dl>
<dt>Name</dt><dd>${escaped(taxpayer.name)}</dd>
<dt>Taxpayer id</dt><dd id="taxpayer-id">${escaped(taxpayer.id)}</dd>
<dt>Status</dt><dd id="taxpayer-status">${escaped(taxpayer.status)}</dd>
</dl>
${prefilled(link)}
<h2>Steps</h2>
<ol>${items.join('')}</ol>
${nextForm(link, taxpayer)}
${queries(link, taxpayer)}`,
  );
}

function errorPage(message: string): Answer {
  return htmlAnswer(404, message, '<p>Ask for a new link where you got this one, or go back and reload the page.</p>');
}

function prefilled({ settings: { prefillData = {}, transcripts = {} } }: SandboxLink): string {
  const details = Object.values(prefillData).flatMap((group) => Object.entries(group ?? {}));
  const rows = details.map(([name, value = '']) => `<dt>${labelOf(name)}</dt><dd>${escaped(shown(name, value))}</dd>`);
  const asked = Object.keys(transcripts).map((name) => `<li>${escaped(name)}</li>`);
  return `${section('Your details', 'dl', rows)}${section('Transcripts asked for', 'ul', asked)}`;
}

function section(title: string, list: 'dl' | 'ul', items: readonly string[]): string {
  return items.length > 0 ? `<h2>${title}</h2>\n<${list}>${items.join('')}</${list}>` : '';
}

function nextForm(link: SandboxLink, { status }: SandboxTaxpayer): string {
  const [action, step] = Object.entries(steps).find(([, { from }]) => from.includes(status)) ?? [];
  if (step) return `<form method="post" action="/c/${escaped(link.id)}/${action}">\n${step.form}\n</form>`;
  if (status === 'REJECTED') return '<p>The tax authority declined. There is nothing left to do with this link.</p>';
  return '<p>This status has no next step.</p>';
}

function queries({ jobId }: SandboxLink, { id }: SandboxTaxpayer): string {
  const pre = (query: string) => `<pre id="graphql-query" tabindex="0">${escaped(query)}</pre>`;
  if (jobId === undefined) {
    const query = `query {\n  taxpayerToken(taxpayerId: "${id}") {\n    name\n    status\n  }\n}`;
    return `<h2>Follow along in GraphQL</h2>\n${pre(query)}`;
  }
  const query = `query {\n  refreshJob(taxpayerId: "${id}", jobId: "${jobId}") {\n    name\n    status\n    observedAt\n  }\n}`;
  return `<h2>Your data refresh</h2>
<dl><dt>Job id</dt><dd id="job-id">${escaped(jobId)}</dd></dl>
<p>Ask the gateway how it goes:</p>
${pre(query)}`;
}

/** Numbers that identify a person or a business are cut to their last four characters. */
function shown(name: string, value: string): string {
  if (name !== 'ssn' && name !== 'taxId') return value;
  return `•••••${value.length > 4 ? value.slice(-4) : ''}`;
}

function labelOf(name: string): string {
  if (name === 'ssn') return 'SSN';
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return escaped(words.charAt(0).toUpperCase() + words.slice(1));
}

const style = `
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem}
dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem}
dd{margin:0;overflow-wrap:anywhere}
pre{overflow-x:auto;padding:.75rem;border:1px solid;border-radius:.25rem}
button,input[type=text]{font:inherit;padding:.6rem 1rem;min-height:2.75rem;max-width:100%;box-sizing:border-box}
:focus-visible{outline:3px solid;outline-offset:2px}
[role=alert]{border-left:.3rem solid;padding-left:.75rem}
[aria-current=step]{font-weight:bold}
`;
const styleHash = createHash('sha256').update(style).digest('base64');
const pageHeaders = {
  'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
};

function htmlAnswer(status: number, title: string, content: string): Answer {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} – sandbox</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${content}
</main>
</body>
</html>
`;
  return withHeaders(answerOf(status, 'text/html; charset=utf-8', html), pageHeaders);
}

const entities: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": '#39' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&${entities[character]};`);
}
