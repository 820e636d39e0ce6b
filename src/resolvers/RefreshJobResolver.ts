import { Ctx, FieldResolver, Query, Resolver, Root, Subscription } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import type { JobView } from '../datasources/RefreshJobs.js';
import type { KeyReader } from '../schema/asSubgraph.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { Taxpayer } from '../schema/Taxpayer.js';
import { JobIdArg, Needs, NullOnlyWithError, TaxpayerIdArg, WaitSeconds } from './decorators.js';

@Resolver(() => RefreshJob)
export class RefreshJobResolver {
  @Needs('refresh-jobs:read')
  @NullOnlyWithError
  @Query(() => RefreshJob, {
    nullable: true,
    description:
      "A refresh job by its id. You do not need the taxpayer's access token: the gateway has it. Null only with an error, such as NOT_FOUND.",
  })
  refreshJob(
    @TaxpayerIdArg taxpayerId: string,
    @JobIdArg jobId: string,
    @Ctx() context: RequestContext,
    @WaitSeconds waitSeconds?: number,
  ) {
    return context.taxpayer(taxpayerId, 'refresh-jobs:read', (taxpayer) => taxpayer.refreshJob(jobId, waitSeconds));
  }

  reference(key: KeyReader, context: RequestContext) {
    return this.refreshJob(key('taxpayerId'), key('jobId'), context);
  }

  @Needs('refresh-jobs:read')
  @Subscription(() => RefreshJob, {
    description:
      'Sends the refresh job as it is now, then each time its status changes. Completes after COMPLETED or FAILED; if it completes earlier, as it does after an hour, subscribe again.',
    subscribe: ({ args, context }: { args: Record<'taxpayerId' | 'jobId', string>; context: RequestContext }) =>
      context.taxpayer(args.taxpayerId, 'refresh-jobs:read', (taxpayer) => taxpayer.watchJob(args.jobId)),
  })
  refreshJobUpdated(
    @Root() view: JobView,
    @TaxpayerIdArg taxpayerId: string,
    @JobIdArg _jobId: string,
    @Ctx() context: RequestContext,
  ) {
    // Each event passes the same door: access is checked again.
    return context.taxpayer(taxpayerId, 'refresh-jobs:read', (taxpayer) =>
      taxpayer.disclose(RefreshJob, 'job-shown', view),
    );
  }

  @FieldResolver(() => Taxpayer, { description: 'The taxpayer whose data the job refreshes.' })
  taxpayer(@Root() job: RefreshJob): Taxpayer {
    return new Taxpayer(job.taxpayerId);
  }
}
