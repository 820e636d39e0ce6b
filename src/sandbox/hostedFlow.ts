import { type Answer, answerOf } from './Answer.js';
import { hostedError, hostedPage } from './hostedPage.js';
import type { Route } from './routeOf.js';
import type { SandboxLink, SandboxState, SandboxTaxpayer } from './SandboxState.js';

type HostedRoute = Extract<Route, { endpoint: 'hostedPage' }>;

interface Step {
  /** Statuses in which the form of the step is on the page. */
  readonly from: readonly string[];
  /** Takes the step, or says what is missing in the form. */
  readonly take: (submission: Submission) => string | undefined;
}

interface Submission {
  readonly state: SandboxState;
  readonly link: SandboxLink;
  readonly taxpayer: SandboxTaxpayer;
  readonly fields: URLSearchParams;
}

const steps: Readonly<Record<string, Step>> = {
  consent: { from: ['CREATED'], take: (submission) => moveTo('CONSENT_RECEIVED', submission) },
  sign: { from: ['CONSENT_RECEIVED'], take: sign },
  decide: { from: ['TAX_AUTHORIZATION_SUBMITTED'], take: decide },
  refresh: { from: ['AUTHORIZED', 'COMPLETED'], take: startRefresh },
};

/** The hosted flow behind a client link: shows the page, and takes the step of a submitted form. */
export function hostedFlow(state: SandboxState, { linkId, action }: HostedRoute, body: string): Answer {
  const link = state.link(linkId);
  const taxpayer = link && state.taxpayer(link.taxpayerId);
  if (!link || !taxpayer) return hostedError(404, 'This link does not exist');
  if (action === undefined) return hostedPage({ link, taxpayer });
  const step = Object.hasOwn(steps, action) ? steps[action] : undefined;
  if (!step) return hostedError(404, 'This page does not exist');
  // A form sent twice, or from an old tab: the page shows where the taxpayer is by now.
  if (!step.from.includes(taxpayer.status)) return backToPage(link);
  const problem = step.take({ state, link, taxpayer, fields: new URLSearchParams(body) });
  return problem === undefined ? backToPage(link) : hostedPage({ link, taxpayer, problem });
}

function sign(submission: Submission): string | undefined {
  const { fields } = submission;
  if (!fields.get('signature')?.trim()) return 'Type your full name to sign.';
  if (fields.get('agreed') !== 'yes') return 'Tick the box to sign the tax-authorization form.';
  return moveTo('TAX_AUTHORIZATION_SUBMITTED', submission);
}

function decide(submission: Submission): string | undefined {
  const decision = submission.fields.get('decision');
  if (decision === 'accept') return moveTo('AUTHORIZED', submission);
  if (decision === 'decline') return moveTo('REJECTED', submission);
  return 'Choose whether the authority accepts or declines.';
}

function startRefresh({ state, link }: Submission): undefined {
  state.startJobFromLink(link);
}

function moveTo(status: string, { state, taxpayer }: Submission): undefined {
  state.updateTaxpayer(taxpayer.id, { status });
}

/** See Other, so that reloading the page does not send the form again. */
function backToPage(link: SandboxLink): Answer {
  const answer = answerOf(303, 'text/plain', '');
  return { ...answer, headers: { ...answer.headers, location: `/c/${link.id}`, 'cache-control': 'no-store' } };
}
