import type { TestGateway } from './gateway.js';

/** A job of a new taxpayer; it keeps processing until a test changes it. */
export function addJob({ sandbox }: Pick<TestGateway, 'sandbox'>, props: { readonly name?: string } = {}) {
  const { id: taxpayerId } = sandbox.addTaxpayer({ status: 'AUTHORIZED' });
  const { jobId } = sandbox.addJob({ taxpayerId, durationMs: Infinity, ...props });
  return { taxpayerId, jobId };
}

export const watchJob = `subscription ($taxpayerId: ID!, $jobId: ID!) {
  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { jobId status }
}`;

/** The result that a subscriber to {@link watchJob} gets. */
export function update(jobId: string, status: string) {
  return { data: { refreshJobUpdated: { jobId, status } } };
}
