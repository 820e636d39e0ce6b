import 'reflect-metadata';
import { GraphQLDateTime } from 'graphql-scalars';
import { Directive, Field, ID, ObjectType } from 'type-graphql';
import type { JobId, TaxpayerId } from '../datasources/identifiers.js';
import type { JobView } from '../datasources/RefreshJobs.js';
import { SharedObject } from '../operations/plans/SharedObject.js';
import { RefreshJobStatus } from './statuses.js';
import { Timestamp } from './Timestamp.js';
import type { Vocabulary } from './Vocabulary.js';

@ObjectType('RefreshJob', { description: "A job that refreshes a taxpayer's data." })
@Directive('@key(fields: "taxpayerId jobId")')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class RefreshJob extends SharedObject {
  @Field(() => ID, { description: "The service's id of the taxpayer." })
  taxpayerId: TaxpayerId;

  @Field(() => ID, { description: "The service's id of the job." })
  jobId: JobId;

  @Field(() => String, { description: 'Name of the job.' })
  name: string;

  @Field(() => RefreshJobStatus, {
    description: 'How far the job has come. UNRECOGNIZED for a value that is new to the gateway.',
  })
  status: RefreshJobStatus;

  @Field(() => GraphQLDateTime, { description: 'When the gateway read this status from the service.' })
  observedAt: Date;

  /** The same object for the same view, so that a status that is shown often is translated once. */
  static of(view: JobView, vocabulary: Vocabulary): RefreshJob {
    view.translated ??= new RefreshJob(view, vocabulary);
    return view.translated as RefreshJob;
  }

  private constructor({ job, observedAt }: JobView, vocabulary: Vocabulary) {
    super();
    this.taxpayerId = job.taxpayerId as TaxpayerId;
    this.jobId = job.jobId as JobId;
    this.name = job.name;
    this.status = vocabulary.jobStatus(job.status);
    this.observedAt = new Timestamp(observedAt);
  }
}
