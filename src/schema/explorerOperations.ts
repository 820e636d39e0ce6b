/** The operations that the explorers begin with: what a newcomer does, in this order. `demo`: the sandbox's data, where it serves. */
export function explorerOperations(demo?: {
  readonly jobs: { readonly processing: { readonly taxpayerId: string; readonly jobId: string } };
}): readonly string[] {
  const { taxpayerId, jobId } = demo?.jobs.processing ?? { taxpayerId: 'a taxpayer id', jobId: 'a job id' };
  return [
    `# A link to give to a taxpayer.
mutation CreateLink {
  createClientLink(input: {}) {
    clientLink {
      id
      url
    }
  }
}
`,
    `# How far a taxpayer's authorization is.
query Status {
  taxpayerToken(taxpayerId: "${taxpayerId}") {
    status
    provider
    name
    fetchedAt
  }
}
`,
    `# How far a data refresh is.
query Job {
  refreshJob(
    taxpayerId: "${taxpayerId}"
    jobId: "${jobId}"
  ) {
    name
    status
    observedAt
  }
}
`,
    `# The same job, live.
subscription Live {
  refreshJobUpdated(
    taxpayerId: "${taxpayerId}"
    jobId: "${jobId}"
  ) {
    status
    observedAt
  }
}
`,
  ];
}
