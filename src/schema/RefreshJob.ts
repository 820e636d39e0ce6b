import { GraphQLDateTime } from 'graphql-scalars';
import { Directive, ID, ObjectType } from 'type-graphql';
import type { JobView } from '../datasources/RefreshJobs.js';
import { Always, openEnum, Timestamp, unknownStatus } from './fields.js';
import type { Vocabulary } from './Vocabulary.js';

const RefreshJobStatus = openEnum('RefreshJobStatus', "State of a job that refreshes a taxpayer's data.", {
  PROCESSING: 'The data is being refreshed.',
  COMPLETED: 'The data is refreshed. Final: the status no longer changes.',
  FAILED: 'The refresh failed. Final: the status no longer changes.',
  UNRECOGNIZED: unknownStatus,
});
type RefreshJobStatus = keyof typeof RefreshJobStatus;

/** The schema's names for the service's statuses (interface, 3.2). */
const statusNames = { processing: 'PROCESSING', completed: 'COMPLETED', failed: 'FAILED' } as const;

@ObjectType('RefreshJob', { description: "A job of the service that refreshes a taxpayer's data." })
@Directive('@key(fields: "taxpayerId jobId")')
@Directive('@cost(weight: 20)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class RefreshJob {
  readonly __typename = 'RefreshJob';
  @Always(() => ID, "The taxpayer's id, assigned by the service.") readonly taxpayerId: string;
  @Always(() => ID, "The job's id, assigned by the service.") readonly jobId: string;
  @Always(() => String, 'Name of the job.') readonly name: string;
  @Always(() => RefreshJobStatus, 'State of the job. UNRECOGNIZED for a value that the gateway does not know.')
  readonly status: RefreshJobStatus;
  @Always(() => GraphQLDateTime, 'When the gateway read this status from the service.') readonly observedAt: Date;

  constructor({ value: { job }, fetchedAt }: JobView, vocabulary: Vocabulary) {
    this.taxpayerId = job.taxpayerId;
    this.jobId = job.jobId;
    this.name = job.name;
    this.status = vocabulary.nameOf('job-status', statusNames, job.status);
    this.observedAt = new Timestamp(fetchedAt);
  }
}
