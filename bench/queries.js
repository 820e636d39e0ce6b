// The documents of the comparison, the same for the gateway and for every baseline.

/** The token record of one taxpayer. Variables: `{ id }`. */
export const hotToken = `query HotToken($id: ID!) {
  taxpayerToken(taxpayerId: $id) { taxpayerId name status provider createdAt fetchedAt stale }
}`;

/** The status of one refresh job. Variables: `{ taxpayerId, jobId }`. */
export const jobStatus = `query JobStatus($taxpayerId: ID!, $jobId: ID!) {
  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { taxpayerId jobId name status observedAt }
}`;

/** The statuses of `jobs` in one request, as for a list page. Another `prefix` of the aliases gives another document. */
export function jobAliases(jobs, prefix) {
  const head = jobs.map((_, n) => `$t${n}: ID!, $j${n}: ID!`).join(', ');
  const fields = jobs.map((_, n) => {
    return `  ${prefix}${n}: refreshJob(taxpayerId: $t${n}, jobId: $j${n}) { jobId name status observedAt }`;
  });
  const variables = jobs.flatMap(({ taxpayerId, jobId }, n) => [
    [`t${n}`, taxpayerId],
    [`j${n}`, jobId],
  ]);
  return { query: `query JobAliases(${head}) {\n${fields.join('\n')}\n}`, variables: Object.fromEntries(variables) };
}
