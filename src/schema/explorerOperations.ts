const placeholders = { taxpayerId: 'a taxpayer id', jobId: 'a job id' };

/**
 * The operations that the explorers begin with: what a newcomer does, in this order. They show a job of the embedded sandbox, if it
 * runs.
 */
export function explorerOperations({ taxpayerId, jobId } = placeholders): readonly string[] {
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
