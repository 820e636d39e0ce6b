/** Arguments that stand in several places read the same in each. */
export const argumentDescriptions = {
  taxpayerId: "The service's id of the taxpayer.",
  jobId: "The service's id of the job.",
  maxAgeSeconds:
    'Ask for a record at most this many seconds old; less than 60 counts as 60. Without it a record may be 15 minutes old, or a day once its status is final.',
  waitSeconds:
    'Wait up to this many seconds, at most 300, for the job to complete or fail; the answer comes as soon as it does.',
} as const;
