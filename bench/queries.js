// The fixed queries of the benchmark, the same for the gateway and for every baseline.

/** The token record of one taxpayer that was asked for before. Variables: `{ id }`. */
export const hotToken = `query HotToken($id: ID!) {
  taxpayerToken(taxpayerId: $id) { taxpayerId name status provider createdAt fetchedAt stale }
}`;

/** The status of one refresh job. Variables: `{ taxpayerId, jobId }`. */
export const jobStatus = `query JobStatus($taxpayerId: ID!, $jobId: ID!) {
  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { taxpayerId jobId name status observedAt }
}`;

/** A subscription to the status of one refresh job. Variables: `{ taxpayerId, jobId }`. */
export const jobUpdates = `subscription JobUpdates($taxpayerId: ID!, $jobId: ID!) {
  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { name status }
}`;

/** The statuses of `count` jobs in one request, as for a list page. Another `prefix` of the aliases gives another document. */
export function jobAliases(count, prefix) {
  const places = Array.from({ length: count }, (_, n) => n);
  return `query JobAliases(${places.map((n) => `$t${n}: ID!, $j${n}: ID!`).join(', ')}) {
${places.map((n) => `  ${prefix}${n}: refreshJob(taxpayerId: $t${n}, jobId: $j${n}) { jobId name status observedAt }`).join('\n')}
}`;
}

/** Variables of {@link jobAliases} for jobs of `{ taxpayerId, jobId }`. */
export function jobAliasVariables(jobs) {
  return Object.fromEntries(
    jobs.flatMap(({ taxpayerId, jobId }, n) => [
      [`t${n}`, taxpayerId],
      [`j${n}`, jobId],
    ]),
  );
}

/** As {@link jobAliases}, with the ids as literals, so that other jobs give another document. */
export function jobLiterals(jobs, prefix) {
  const fields = jobs.map(
    ({ taxpayerId, jobId }, n) =>
      `  ${prefix}${n}: refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { jobId name status observedAt }`,
  );
  return `query JobLiterals {\n${fields.join('\n')}\n}`;
}

export const typename = '{ __typename }';

/** Fifty refresh jobs as a router asks for them. Variables: `{ representations }`. */
export const entities = `query Entities($representations: [_Any!]!) {
  _entities(representations: $representations) { ... on RefreshJob { jobId name status observedAt } }
}`;

export const createClientLink = `mutation CreateClientLink($input: CreateClientLinkInput!) {
  createClientLink(input: $input) { clientLink { id url } replayed }
}`;

/** Every part of the input that the service takes; the values are made up. */
export const fullLinkInput = {
  metadata: { customer: 'c-1', crm: { id: 42, tags: ['new', 'imported'] } },
  settings: {
    flowType: 'full',
    transcripts: {
      actr: ['2021', '2022', '2023'],
      reca: ['2023'],
      waid: ['2023'],
      venf: ['2023'],
      w2: ['2022', '2023'],
      form1095A: ['2023'],
      notice: ['all'],
    },
    prefillData: {
      personalInfo: { firstName: 'Ada', lastName: 'Example', ssn: '000-00-0000' },
      businessInfo: { name: 'Example LLC', taxId: '00-0000000', type: 'llc', phone: '+10000000000', title: 'Owner' },
      address: { street: '1 Example St', other: 'Unit 2', city: 'Springfield', state: 'IL', zip: '00000' },
    },
  },
};
