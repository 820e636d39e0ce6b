import { createHash } from 'node:crypto';
import { type Answer, answerOf } from './Answer.js';
import type { SandboxLink, SandboxTaxpayer } from './SandboxState.js';

export interface HostedPageView {
  readonly link: SandboxLink;
  readonly taxpayer: SandboxTaxpayer;
  /** What was wrong with the form that was sent. */
  readonly problem?: string;
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

const steps = ['Consent', 'Sign the tax-authorization form', 'The authority decides', 'Refresh the data'] as const;

/** The step a taxpayer of each status is at; one past the end of a status nobody knows. */
const stepOfStatus: Readonly<Record<string, number>> = {
  CREATED: 0,
  CONSENT_RECEIVED: 1,
  TAX_AUTHORIZATION_SUBMITTED: 2,
  AUTHORIZED: 3,
  COMPLETED: 3,
};

/** The page of a client link: where the taxpayer is in the flow, and the form of the next step. Plain HTML, no script. */
export function hostedPage({ link, taxpayer, problem }: HostedPageView): Answer {
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
<ol>${steps.map((step, index) => `<li${index === stepOfStatus[taxpayer.status] ? ' aria-current="step"' : ''}>${step}</li>`).join('')}</ol>
${nextForm(link, taxpayer)}
${queries(link, taxpayer)}`,
  );
}

export function hostedError(status: number, message: string): Answer {
  return htmlAnswer(
    status,
    message,
    '<p>Ask for a new link where you got this one, or go back and reload the page.</p>',
  );
}

function prefilled({ settings: { prefillData = {}, transcripts = {} } }: SandboxLink): string {
  const details = Object.values(prefillData).flatMap((group) => Object.entries(group ?? {}));
  const rows = details.map(([name, value = '']) => `<dt>${labelOf(name)}</dt><dd>${escaped(shown(name, value))}</dd>`);
  const asked = Object.keys(transcripts).map((name) => `<li>${escaped(name)}</li>`);
  const prefilledRows = rows.length > 0 ? `<h2>Your details</h2>\n<dl>${rows.join('')}</dl>` : '';
  return `${prefilledRows}${asked.length > 0 ? `<h2>Transcripts asked for</h2>\n<ul>${asked.join('')}</ul>` : ''}`;
}

function nextForm(link: SandboxLink, { status }: SandboxTaxpayer): string {
  switch (status) {
    case 'CREATED':
      return form(link, 'consent', '<p>I agree that my tax data is read for me.</p>', button('Give consent'));
    case 'CONSENT_RECEIVED':
      return form(
        link,
        'sign',
        `<p><label for="signature">Type your full name as signature</label><br>
<input type="text" id="signature" name="signature" autocomplete="name" required maxlength="200"></p>
<p><label><input type="checkbox" name="agreed" value="yes" required> I sign the tax-authorization form</label></p>`,
        button('Sign and submit'),
      );
    case 'TAX_AUTHORIZATION_SUBMITTED':
      return form(
        link,
        'decide',
        '<p>In the sandbox you play the tax authority, too.</p>',
        `${button('Authority accepts', 'accept')} ${button('Authority declines', 'decline')}`,
      );
    case 'AUTHORIZED':
    case 'COMPLETED':
      return form(link, 'refresh', '<p>The authorization is in place.</p>', button('Start a data refresh'));
    case 'REJECTED':
      return '<p>The tax authority declined. There is nothing left to do with this link.</p>';
    default:
      return '<p>This status has no next step.</p>';
  }
}

function form(link: SandboxLink, action: string, fields: string, buttons: string): string {
  return `<form method="post" action="/c/${escaped(link.id)}/${action}">\n${fields}\n<p>${buttons}</p>\n</form>`;
}

function button(label: string, decision?: string): string {
  return `<button type="submit"${decision ? ` name="decision" value="${decision}"` : ''}>${label}</button>`;
}

function queries({ jobId }: SandboxLink, { id }: SandboxTaxpayer): string {
  const status = `query {\n  taxpayerToken(taxpayerId: "${id}") {\n    name\n    status\n  }\n}`;
  if (jobId === undefined) {
    return `<h2>Follow along in GraphQL</h2>\n<pre id="graphql-query" tabindex="0">${escaped(status)}</pre>`;
  }
  const job = `query {\n  refreshJob(taxpayerId: "${id}", jobId: "${jobId}") {\n    name\n    status\n    observedAt\n  }\n}`;
  return `<h2>Your data refresh</h2>
<dl><dt>Job id</dt><dd id="job-id">${escaped(jobId)}</dd></dl>
<p>Ask the gateway how it goes:</p>
<pre id="graphql-query" tabindex="0">${escaped(job)}</pre>`;
}

/** Numbers that identify a person or a business are cut to their last four characters. */
function shown(name: string, value: string): string {
  if (name !== 'ssn' && name !== 'taxId') return value;
  return value.length > 4 ? `•••••${value.slice(-4)}` : '•••••';
}

function labelOf(name: string): string {
  if (name === 'ssn') return 'SSN';
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return escaped(words.charAt(0).toUpperCase() + words.slice(1));
}

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
  const answer = answerOf(status, 'text/html; charset=utf-8', html);
  return { ...answer, headers: { ...answer.headers, ...securityHeaders() } };
}

function securityHeaders(): Record<string, string> {
  const styleHash = createHash('sha256').update(style).digest('base64');
  return {
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  };
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
