import type { TestGateway } from './gateway.js';
import { until } from './until.js';

/** Settings under which a watcher sees a change of a job at once. */
export const quickPolls = { JOB_POLL_MIN_MS: '20', JOB_POLL_MAX_MS: '50' };

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

/** The sum of the series of `/metrics` whose lines begin so. */
export async function metric({ origin }: { readonly origin: string }, beginning: string): Promise<number> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(beginning));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Resolves when {@link metric} is `value`. */
export const whenMetric = (gateway: { readonly origin: string }, line: string, value: number, timeoutMs?: number) =>
  until(async () => (await metric(gateway, line)) === value, timeoutMs);
