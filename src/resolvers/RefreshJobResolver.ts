import {
  Arg,
  Authorized,
  Ctx,
  Directive,
  FieldResolver,
  ID,
  Int,
  Query,
  Resolver,
  Root,
  Subscription,
} from 'type-graphql';
import type { RequestContext } from '../context.js';
import type { JobView } from '../datasources/RefreshJobs.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { Taxpayer } from '../schema/Taxpayer.js';
import { argumentDescriptions } from './argumentDescriptions.js';

@Resolver(() => RefreshJob)
export class RefreshJobResolver {
  @Authorized('refresh-jobs:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["refresh-jobs:read"]])')
  @Query(() => RefreshJob, {
    nullable: true,
    description: "A refresh job by id. The gateway finds the taxpayer's token by itself.",
  })
  refreshJob(
    @Arg('taxpayerId', () => ID, { description: argumentDescriptions.taxpayerId }) taxpayerId: string,
    @Arg('jobId', () => ID, { description: argumentDescriptions.jobId }) jobId: string,
    @Ctx() context: RequestContext,
    @Arg('waitSeconds', () => Int, { nullable: true, description: argumentDescriptions.waitSeconds })
    waitSeconds: number | undefined,
  ): RefreshJob | Promise<RefreshJob> {
    return context.refreshJob(taxpayerId, jobId, waitSeconds);
  }

  @Authorized('refresh-jobs:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["refresh-jobs:read"]])')
  @Subscription(() => RefreshJob, {
    description:
      'A refresh job each time its status changes: at once as it is now, and last when it has completed or failed.',
    subscribe: ({ args, context }: { args: Record<string, string>; context: RequestContext }) =>
      context.watchRefreshJob(args['taxpayerId'] ?? '', args['jobId'] ?? ''),
  })
  refreshJobUpdated(
    @Root() view: JobView,
    @Arg('taxpayerId', () => ID, { description: argumentDescriptions.taxpayerId }) _taxpayerId: string,
    @Arg('jobId', () => ID, { description: argumentDescriptions.jobId }) _jobId: string,
    @Ctx() context: RequestContext,
  ): RefreshJob {
    return context.refreshJobSeen(view);
  }

  @FieldResolver(() => Taxpayer, { description: 'The taxpayer whose data the job refreshes.' })
  taxpayer(@Root() job: RefreshJob): Taxpayer {
    return { id: job.taxpayerId };
  }
}
