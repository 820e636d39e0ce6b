import { createHash } from 'node:crypto';
import { type Answer, answerOf, withHeaders } from './Answer.js';
import type { Received } from './endpoints.js';
import type { SandboxLink, SandboxTaxpayer } from './SandboxState.js';

interface Step {
  readonly title: string;
  /** The status in which it is the next step. */
  readonly from: string;
  /** What stands in its form, which keeps what was typed when it was refused. */
  readonly form: (link: SandboxLink, refusal?: Refusal) => string;
  readonly take: (fields: URLSearchParams, link: SandboxLink) => Outcome;
}

/** What is wrong with a form, and in which field. */
type Problem = { readonly problem: string; readonly field?: string };
type Outcome = Problem | { readonly status: string } | { readonly startsJob: boolean };
type Refusal = Problem & { readonly fields: URLSearchParams };

const steps: Readonly<Record<string, Step>> = {
  consent: {
    title: 'Consent',
    from: 'CREATED',
    form: () => '<p>I agree that my tax data is read for me.</p>\n<p><button type="submit">Give consent</button></p>',
    take: () => ({ status: 'CONSENT_RECEIVED' }),
  },
  sign: {
    title: 'Sign the tax-authorization form',
    from: 'CONSENT_RECEIVED',
    form: (_link, refusal) => `<p><label for="signature">Type your full name as signature</label><br>
<input type="text" id="signature" name="signature" autocomplete="name" required pattern=".*\\S.*" title="Your full name"
 maxlength="200" value="${escaped(refusal?.fields.get('signature') ?? '')}"${markOf('signature', refusal)}></p>
<p><label><input type="checkbox" name="agreed" value="yes" required${refusal?.fields.has('agreed') ? ' checked' : ''}
${markOf('agreed', refusal)}> I sign the tax-authorization form</label></p>
<p><button type="submit">Sign and submit</button></p>`,
    take: (fields) => {
      if (!fields.get('signature')?.trim()) return { problem: 'Type your full name to sign.', field: 'signature' };
      if (fields.get('agreed') !== 'yes') return { problem: 'Tick the box to sign the form.', field: 'agreed' };
      return { status: 'TAX_AUTHORIZATION_SUBMITTED' };
    },
  },
  decide: {
    title: 'The authority decides',
    from: 'TAX_AUTHORIZATION_SUBMITTED',
    form: () => `<p>In the sandbox you play the tax authority, too.</p>
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
    from: 'AUTHORIZED',
    form: ({ jobId = '' }) => `<p>The authorization is in place.</p>
<p><input type="hidden" name="lastJobId" value="${escaped(jobId)}"><button type="submit">Start a data refresh</button></p>`,
    take: (fields, { jobId = '' }) => ({ startsJob: (fields.get('lastJobId') ?? '') === jobId }),
  },
};

/**
 * The hosted flow behind a client link: shows where the taxpayer is, with the form of the next step, and takes the step of a
 * submitted form. Plain HTML, no script.
 */
export function hostedPage({ route: { linkId, action }, request, body, service: { state } }: Received): Answer {
  const link = state.link(linkId);
  const taxpayer = link && state.taxpayers.get(link.taxpayerId);
  if (!link || !taxpayer) return errorPage('This link does not exist');
  const step = Object.hasOwn(steps, action) ? steps[action] : undefined;
  if (action !== '' && !step) return errorPage('This page does not exist');
  // Also at the address of a form: after a refusal a browser may load it again.
  if (request.method === 'GET') return page(link, taxpayer);
  // A form sent twice, or from an old tab, changes nothing: the page shows where the taxpayer is by now.
  if (step?.from === taxpayer.status) {
    const fields = new URLSearchParams(body);
    const outcome = step.take(fields, link);
    if ('problem' in outcome) return page(link, taxpayer, { ...outcome, fields });
    if ('status' in outcome) state.updateTaxpayer(taxpayer.id, outcome);
    else if (outcome.startsJob) state.startJobFromLink(link);
  }
  // See Other, so that reloading the page does not send the form again.
  return withHeaders(answerOf(303, 'text/plain', ''), { location: `/c/${link.id}`, 'cache-control': 'no-store' });
}

/** For whoever opens the address of the service in a browser. */
export function frontPage(): Answer {
  const content = '<p>It stands in for the service. Create a client link and open its <code>url</code>.</p>';
  return htmlAnswer(200, 'Sandbox of a taxpayer gateway', content);
}

function page(link: SandboxLink, taxpayer: SandboxTaxpayer, refusal?: Refusal): Answer {
  const items = Object.values(steps).map(
    ({ title, from }) => `<li${from === taxpayer.status ? ' aria-current="step"' : ''}>${title}</li>`,
  );
  return htmlAnswer(
    refusal === undefined ? 200 : 422,
    'Tax authorization',
    `<p>This is the sandbox of a taxpayer gateway. Nothing you enter here leaves this computer.</p>
<h2>You</h2>
<dl>
<dt>Name</dt><dd>${escaped(taxpayer.name)}</dd>
<dt>Taxpayer id</dt><dd id="taxpayer-id">${escaped(taxpayer.id)}</dd>
<dt>Status</dt><dd id="taxpayer-status">${escaped(taxpayer.status)}</dd>
</dl>
${prefilled(link)}
<h2>Steps</h2>
<ol>${items.join('')}</ol>
${nextForm(link, taxpayer, refusal)}
${queries(link, taxpayer)}`,
  );
}

function errorPage(message: string): Answer {
  return htmlAnswer(404, message, '<p>Ask for a new link where you got this one, or go back and reload the page.</p>');
}

function prefilled({ settings: { prefillData = {}, transcripts = {} } }: SandboxLink): string {
  const { personalInfo, businessInfo, address } = prefillData;
  const asked = Object.entries(transcripts).map(([kind, items = []]) => [kind, items.join(', ') || 'no items']);
  return `${details('Your personal details', personalInfo)}${details('Your business', businessInfo)}
${details('Your address', address)}${details('Transcripts asked for', Object.fromEntries(asked))}`;
}

/** A section with the values that are not blank; none when all are. */
function details(title: string, values: Partial<Record<string, string>> = {}): string {
  const filled = Object.entries(values).filter(([, value]) => value?.trim());
  const rows = filled.map(([name, value = '']) => `<dt>${labelOf(name)}</dt><dd>${escaped(shown(name, value))}</dd>`);
  return rows.length > 0 ? `<h2>${title}</h2>\n<dl>${rows.join('')}</dl>` : '';
}

function nextForm(link: SandboxLink, { status }: SandboxTaxpayer, refusal?: Refusal): string {
  const [action, step] = Object.entries(steps).find(([, { from }]) => from === status) ?? [];
  const start = `<form method="post" action="/c/${escaped(link.id)}/${action}">`;
  const problem = refusal === undefined ? '' : `<p role="alert" id="problem">${escaped(refusal.problem)}</p>`;
  if (step) return `${start}\n${problem}${step.form(link, refusal)}\n</form>`;
  const declined = status === 'REJECTED' ? 'The tax authority declined. ' : '';
  return `<p>${declined}There is nothing left to do with this link.</p>`;
}

/** Marks the field that is wrong, for the eye, the keyboard and a screen reader. */
function markOf(name: string, refusal: Refusal | undefined): string {
  return refusal?.field === name ? ' aria-invalid="true" aria-describedby="problem" autofocus' : '';
}

function queries({ jobId }: SandboxLink, { id }: SandboxTaxpayer): string {
  const pre = (query: string) => `<pre id="graphql-query" tabindex="0">${escaped(query)}</pre>`;
  if (jobId === undefined) {
    const query = `query {\n  taxpayerToken(taxpayerId: "${id}", maxAgeSeconds: 60) {\n    name\n    status\n  }\n}`;
    return `<h2>Follow along in GraphQL</h2>
<p>The gateway may go on showing a status for up to a minute after it has changed.</p>\n${pre(query)}`;
  }
  const query = `query {\n  refreshJob(taxpayerId: "${id}", jobId: "${jobId}") {\n    name\n    status\n    observedAt\n  }\n}`;
  return `<h2>Your data refresh</h2>
<dl><dt>Job id</dt><dd id="job-id">${escaped(jobId)}</dd></dl>
<p>Ask the gateway how it goes. Some seconds after you first ask, the refresh and your status are completed.</p>
${pre(query)}`;
}

/** Numbers that identify a person or a business are cut to their last four characters. */
function shown(name: string, value: string): string {
  if (name !== 'ssn' && name !== 'taxId') return value;
  return `•••••${value.length > 4 ? value.slice(-4) : ''}`;
}

function labelOf(name: string): string {
  if (name === 'ssn') return 'SSN';
  const words = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
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
[role=alert],[aria-invalid]{border-left:.3rem solid;padding-left:.75rem}
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
<title>${status === 422 ? 'Error: ' : ''}${escaped(title)} – sandbox</title>
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
