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
  const fields = jobs.map((_, n) => jobField(`${prefix}${n}`, `$t${n}`, `$j${n}`));
  const variables = jobs.flatMap(({ taxpayerId, jobId }, n) => [
    [`t${n}`, taxpayerId],
    [`j${n}`, jobId],
  ]);
  return { query: `query JobAliases(${head}) {\n${fields.join('\n')}\n}`, variables: Object.fromEntries(variables) };
}

/** As {@link jobAliases}, with the ids as literals, so that other jobs give another document. */
export function jobLiterals(jobs, prefix) {
  const fields = jobs.map(({ taxpayerId, jobId }, n) => jobField(`${prefix}${n}`, `"${taxpayerId}"`, `"${jobId}"`));
  return { query: `query JobLiterals {\n${fields.join('\n')}\n}` };
}

function jobField(alias, taxpayerId, jobId) {
  return `  ${alias}: refreshJob(taxpayerId: ${taxpayerId}, jobId: ${jobId}) { jobId name status observedAt }`;
}
