// The fixed queries of the benchmark, the same for the gateway and for every baseline.

/** The token record of one taxpayer that was asked for before. Variables: `{ id }`. */
export const hotToken = `query HotToken($id: ID!) {
  taxpayerToken(taxpayerId: $id) { taxpayerId name status provider createdAt fetchedAt stale }
}`;

/** The status of one refresh job. Variables: `{ taxpayerId, jobId }`. */
export const jobStatus = `query JobStatus($taxpayerId: ID!, $jobId: ID!) {
  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId) { taxpayerId jobId name status observedAt }
}`;

const places = Array.from({ length: 50 }, (_, index) => index);

/** The token records of fifty taxpayers in one request, as a list page asks for them. Variables: `fiftyVariables`. */
export const fiftyAliases = `query FiftyAliases(${places.map((n) => `$t${n}: ID!`).join(', ')}) {
${places.map((n) => `  a${n}: taxpayerToken(taxpayerId: $t${n}) { taxpayerId name status }`).join('\n')}
}`;

/** Variables of `fiftyAliases` for fifty (or, repeated, fewer) taxpayers. */
export function fiftyVariables(taxpayerIds) {
  return Object.fromEntries(places.map((n) => [`t${n}`, taxpayerIds[n % taxpayerIds.length]]));
}

export const createClientLink = `mutation CreateClientLink($input: CreateClientLinkInput!) {
  createClientLink(input: $input) { clientLink { id url } replayed }
}`;
