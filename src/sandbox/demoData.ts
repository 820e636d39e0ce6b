import { errorAnswer } from './answers.js';
import type { SandboxState, SandboxTaxpayer } from './state.js';

/** Taxpayers that exist in every sandbox: one per status, one whose provider no catalogue knows, and four whose calls fail. */
const taxpayers = {
  created: demoTaxpayer('1', 'Carla Created', 'irs', 'CREATED'),
  consentReceived: demoTaxpayer('2', 'Connor Consented', 'irs_tax_pro', 'CONSENT_RECEIVED'),
  taxAuthorizationSubmitted: demoTaxpayer('3', 'Suki Submitted', 'service-sandbox', 'TAX_AUTHORIZATION_SUBMITTED'),
  authorized: demoTaxpayer('4', 'Arthur Authorized', 'irs', 'AUTHORIZED'),
  rejected: demoTaxpayer('5', 'Rita Rejected', 'irs_tax_pro', 'REJECTED'),
  completed: demoTaxpayer('6', 'Colin Completed', 'service-sandbox', 'COMPLETED'),
  unknownProvider: demoTaxpayer('7', 'Una Unknown-Provider', 'provider_from_the_future', 'AUTHORIZED'),
  rateLimited: demoTaxpayer('a', 'Rowan Rate-Limited', 'irs', 'AUTHORIZED', {
    taxpayerToken: errorAnswer(429, 'Too many calls', { 'retry-after': 5 }),
  }),
  unavailable: demoTaxpayer('b', 'Ursula Unavailable', 'irs', 'AUTHORIZED', {
    taxpayerToken: errorAnswer(503, 'Out of order'),
  }),
  slow: demoTaxpayer('c', 'Sam Slow', 'irs', 'AUTHORIZED', {
    taxpayerToken: { ...errorAnswer(504, 'Late'), delayMs: 60_000 },
  }),
  refusedToken: demoTaxpayer('d', 'Rex Refused-Token', 'irs', 'AUTHORIZED', {
    refreshJob: errorAnswer(401, 'The access token is refused'),
  }),
};
const taxpayerId = taxpayers.authorized.id;

/** The fixed ids of the demo data. The jobs, by their status, all belong to the authorized taxpayer. */
export const demoData = {
  taxpayerIds: Object.fromEntries(Object.entries(taxpayers).map(([name, { id }]) => [name, id])) as {
    readonly [Name in keyof typeof taxpayers]: string;
  },
  jobs: {
    completed: { taxpayerId, jobId: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc' },
    failed: { taxpayerId, jobId: 'ffffffff-ffff-4fff-8fff-ffffffffffff' },
    /** Completes some time after it is first read. */
    processing: { taxpayerId, jobId: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb' },
  },
} as const;

/** The ids as they are printed, each after what it is. */
export const demoRows = [
  ...Object.entries(demoData.taxpayerIds).map(([name, id]) => [`demo taxpayer ${name}`, id] as const),
  ...Object.entries(demoData.jobs).map(([name, { jobId }]) => [`demo job ${name} of authorized`, jobId] as const),
];

const { processing } = demoData.jobs;
export const firstQuery = `{
  taxpayerToken(taxpayerId: "${taxpayerId}") { status provider name fetchedAt }
  refreshJob(taxpayerId: "${taxpayerId}", jobId: "${processing.jobId}") { name status observedAt }
}`;

export function addDemoData(state: SandboxState): void {
  for (const taxpayer of Object.values(taxpayers)) state.addTaxpayer(taxpayer);
  for (const [status, ids] of Object.entries(demoData.jobs)) {
    state.addJob({ ...ids, name: 'Demo refresh (not real)', status });
  }
}

/** Ids such as 44444444-4444-4444-8444-444444444444: valid version 4 UUIDs that are obviously not real. */
function demoTaxpayer(
  d: string,
  name: string,
  providerId: string,
  status: string,
  failures: SandboxTaxpayer['failures'] = {},
) {
  return {
    id: `${d.repeat(8)}-${d.repeat(4)}-4${d.repeat(3)}-8${d.repeat(3)}-${d.repeat(12)}`,
    name: `${name} (not real)`,
    metadata: { crmId: `sandbox-crm-${d}`, sandbox: true },
    providerId,
    createdAt: '2024-01-04T09:00:00.000Z',
    status,
    accessToken: `sandbox-token-not-real-${d}`,
    failures,
  };
}
