import { errorCodeOf, type JobUpdate, watchRefreshJob } from 'taxpayer-gateway-client';

export async function run(url: string, taxpayerId: string, jobId: string) {
  const seen: JobUpdate['status'][] = [];
  for await (const { status } of watchRefreshJob({ url, taxpayerId, jobId })) seen.push(status);
  const failure = await watchRefreshJob({ url, taxpayerId: 'nobody', jobId })
    .next()
    .catch((error: unknown) => error);
  return { status: seen.at(-1), code: errorCodeOf(failure) };
}
