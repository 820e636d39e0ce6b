import { FieldResolver, Query, Resolver, Subscription } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import type { TaxpayerAccess } from '../context/TaxpayerAccess.js';
import type { JobView } from '../datasources/RefreshJobs.js';
import type { KeyReader } from '../schema/asSubgraph.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { Taxpayer } from '../schema/Taxpayer.js';
import { type Arguments, JobIdArg, NullOnlyWithError, OfTaxpayer, TaxpayerIdArg, WaitSeconds } from './decorators.js';

@Resolver(() => RefreshJob)
export class RefreshJobResolver {
  @OfTaxpayer('refresh-jobs:read')
  @NullOnlyWithError
  @Query(() => RefreshJob, {
    nullable: true,
    description:
      "A refresh job by its id. You do not need the taxpayer's access token: the gateway has it. Null only with an error, such as NOT_FOUND.",
  })
  refreshJob(taxpayer: TaxpayerAccess, @TaxpayerIdArg @JobIdArg @WaitSeconds { jobId, waitSeconds }: Arguments) {
    return taxpayer.refreshJob(jobId, waitSeconds);
  }

  static reference(key: KeyReader, context: RequestContext) {
    return context.taxpayer(key('taxpayerId'), 'refresh-jobs:read', (taxpayer) => taxpayer.refreshJob(key('jobId')));
  }

  @OfTaxpayer('refresh-jobs:read')
  @Subscription(() => RefreshJob, {
    description:
      'Sends the refresh job as it is now, then each time its status changes. Completes after COMPLETED or FAILED; if it completes earlier, as it does after an hour, subscribe again.',
    subscribe: ({ args, context }: { args: Arguments; context: RequestContext }) =>
      context.taxpayer(args.taxpayerId, 'refresh-jobs:read', (taxpayer) => taxpayer.watchJob(args.jobId)),
  })
  refreshJobUpdated(taxpayer: TaxpayerAccess, @TaxpayerIdArg @JobIdArg _args: Arguments, view: JobView) {
    return taxpayer.disclose(RefreshJob, 'job-shown', view); // access was checked again for this event
  }

  @FieldResolver(() => Taxpayer, { description: 'The taxpayer whose data the job refreshes.' })
  taxpayer(job: RefreshJob): Taxpayer {
    return new Taxpayer(job.taxpayerId);
  }
}
