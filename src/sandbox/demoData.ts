import type { SandboxState } from './SandboxState.js';

/** Taxpayers that exist in every sandbox, one per status and one whose provider no catalogue knows. */
const taxpayers = [
  demoTaxpayer(1, 'Carla Created', 'irs', 'CREATED'),
  demoTaxpayer(2, 'Connor Consented', 'irs_tax_pro', 'CONSENT_RECEIVED'),
  demoTaxpayer(3, 'Suki Submitted', 'service-sandbox', 'TAX_AUTHORIZATION_SUBMITTED'),
  demoTaxpayer(4, 'Arthur Authorized', 'irs', 'AUTHORIZED'),
  demoTaxpayer(5, 'Rita Rejected', 'irs_tax_pro', 'REJECTED'),
  demoTaxpayer(6, 'Colin Completed', 'service-sandbox', 'COMPLETED'),
  demoTaxpayer(7, 'Una Unknown-Provider', 'provider_from_the_future', 'AUTHORIZED'),
] as const;

/**
 * The fixed ids of the demo data. The jobs all belong to the authorized taxpayer; the processing one completes some time
 * after it is first read.
 */
export const demoData = {
  taxpayerIds: {
    created: taxpayers[0].id,
    consentReceived: taxpayers[1].id,
    taxAuthorizationSubmitted: taxpayers[2].id,
    authorized: taxpayers[3].id,
    rejected: taxpayers[4].id,
    completed: taxpayers[5].id,
    unknownProvider: taxpayers[6].id,
  },
  jobs: {
    completed: { taxpayerId: taxpayers[3].id, jobId: 'cccccccc-cccc-4ccc-8ccc-cccccccccccc' },
    failed: { taxpayerId: taxpayers[3].id, jobId: 'ffffffff-ffff-4fff-8fff-ffffffffffff' },
    processing: { taxpayerId: taxpayers[3].id, jobId: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb' },
  },
} as const;

export type DemoData = typeof demoData;

export function addDemoData(state: SandboxState): void {
  for (const taxpayer of taxpayers) state.addTaxpayer(taxpayer);
  state.addJob({ ...demoData.jobs.completed, name: 'Finished refresh (not real)', status: 'completed' });
  state.addJob({ ...demoData.jobs.failed, name: 'Failed refresh (not real)', status: 'failed' });
  state.addJob({ ...demoData.jobs.processing, name: 'Running refresh (not real)' });
}

/** Ids such as 44444444-4444-4444-8444-444444444444: valid version 4 UUIDs that nobody takes for real ones. */
function demoTaxpayer(digit: number, name: string, providerId: string, status: string) {
  const d = String(digit);
  return {
    id: `${d.repeat(8)}-${d.repeat(4)}-4${d.repeat(3)}-8${d.repeat(3)}-${d.repeat(12)}`,
    name: `${name} (not real)`,
    metadata: { crmId: `sandbox-crm-${d}`, sandbox: true },
    providerId,
    createdAt: `2024-01-0${d}T09:00:00.000Z`,
    status,
    accessToken: `sandbox-token-not-real-${d}`,
  };
}
