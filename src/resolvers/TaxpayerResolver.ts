import { Arg, Authorized, Ctx, Directive, FieldResolver, ID, Int, Query, Resolver, Root } from 'type-graphql';
import type { RequestContext } from '../context.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { Taxpayer } from '../schema/Taxpayer.js';
import { TaxpayerToken } from '../schema/TaxpayerToken.js';
import { argumentDescriptions } from './argumentDescriptions.js';

/** `Query.taxpayer`, and what hangs on a taxpayer wherever it was reached from. */
@Resolver(() => Taxpayer)
export class TaxpayerResolver {
  @Authorized('taxpayers:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["taxpayers:read"]])')
  @Query(() => Taxpayer, { nullable: true, description: 'A taxpayer by id. By itself it asks nothing of the service.' })
  taxpayer(
    @Arg('id', () => ID, { description: argumentDescriptions.taxpayerId }) id: string,
    @Ctx() context: RequestContext,
  ): Taxpayer {
    return { id: context.taxpayer(id, 'id').id };
  }

  @Authorized('taxpayers:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["taxpayers:read"]])')
  @FieldResolver(() => TaxpayerToken, { nullable: true, description: 'The token record of the taxpayer.' })
  token(
    @Root() taxpayer: Taxpayer,
    @Ctx() context: RequestContext,
    @Arg('maxAgeSeconds', () => Int, { nullable: true, description: argumentDescriptions.maxAgeSeconds })
    maxAgeSeconds: number | undefined,
  ): TaxpayerToken | Promise<TaxpayerToken> {
    return context.taxpayerToken(taxpayer.id, maxAgeSeconds);
  }

  @Authorized('refresh-jobs:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["refresh-jobs:read"]])')
  @FieldResolver(() => RefreshJob, { nullable: true, description: 'A refresh job of the taxpayer.' })
  refreshJob(
    @Root() taxpayer: Taxpayer,
    @Arg('jobId', () => ID, { description: argumentDescriptions.jobId }) jobId: string,
    @Ctx() context: RequestContext,
  ): RefreshJob | Promise<RefreshJob> {
    return context.refreshJob(taxpayer.id, jobId);
  }
}
