import { Directive, FieldResolver, Query, Resolver, Subscription } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import type { TaxpayerAccess } from '../context/TaxpayerAccess.js';
import type { TokenView } from '../datasources/tokenAnswer.js';
import type { KeyReader } from '../schema/asSubgraph.js';
import { RefreshJob } from '../schema/RefreshJob.js';
import { Taxpayer, TaxpayerToken } from '../schema/Taxpayer.js';
import {
  type Arguments,
  IdArg,
  JobIdArg,
  MaxAgeSeconds,
  NullOnlyWithError,
  OfTaxpayer,
  TaxpayerIdArg,
} from './decorators.js';

/** `Query.taxpayer`, and the fields of a Taxpayer, whichever field it was reached by. */
@Resolver(() => Taxpayer)
export class TaxpayerResolver {
  @OfTaxpayer('taxpayers:read')
  @NullOnlyWithError
  @Query(() => Taxpayer, {
    nullable: true,
    description:
      'A taxpayer by id, with the token record and refresh jobs. Asking for the id alone does not check that the taxpayer exists. Null only with an error, such as FORBIDDEN.',
  })
  taxpayer({ id }: TaxpayerAccess, @IdArg _args: Arguments) {
    return new Taxpayer(id);
  }

  /** A caller needs the scope of any one of the taxpayer's fields; each field then checks its own. */
  static reference(key: KeyReader, context: RequestContext) {
    const { scopes } = context.facts.caller;
    const isForJobs = scopes.has('refresh-jobs:read') && !scopes.has('taxpayers:read');
    const scope = isForJobs ? 'refresh-jobs:read' : 'taxpayers:read';
    return context.taxpayer(key('id'), scope, ({ id }) => new Taxpayer(id), 'id');
  }

  @OfTaxpayer('taxpayers:read')
  @NullOnlyWithError
  @FieldResolver(() => TaxpayerToken, {
    nullable: true,
    description: 'The token record of the taxpayer. Null only with an error, such as NOT_FOUND.',
  })
  token(taxpayer: TaxpayerAccess, @MaxAgeSeconds { maxAgeSeconds }: Arguments) {
    return taxpayer.record(maxAgeSeconds);
  }

  @OfTaxpayer('refresh-jobs:read')
  @NullOnlyWithError
  @FieldResolver(() => RefreshJob, {
    nullable: true,
    description: 'A refresh job of the taxpayer. Null only with an error, such as NOT_FOUND.',
  })
  refreshJob(taxpayer: TaxpayerAccess, @JobIdArg { jobId }: Arguments) {
    return taxpayer.refreshJob(jobId);
  }
}

@Resolver(() => TaxpayerToken)
export class TaxpayerTokenResolver {
  @OfTaxpayer('taxpayers:read')
  @NullOnlyWithError
  @Query(() => TaxpayerToken, {
    nullable: true,
    description: 'The token record of a taxpayer, usually from the cache. Null only with an error, such as NOT_FOUND.',
  })
  taxpayerToken(taxpayer: TaxpayerAccess, @TaxpayerIdArg @MaxAgeSeconds { maxAgeSeconds }: Arguments) {
    return taxpayer.record(maxAgeSeconds);
  }

  @OfTaxpayer('taxpayers:read')
  @Subscription(() => TaxpayerToken, {
    description:
      'Sends the token record of a taxpayer as it is now, then each time it changes; a changed access token alone is not sent. Completes after the final status REJECTED or COMPLETED; if it completes earlier, as it does after an hour, subscribe again.',
    subscribe: ({ args, context }: { args: Arguments; context: RequestContext }) =>
      context.taxpayer(args.taxpayerId, 'taxpayers:read', (taxpayer) => taxpayer.watchRecord()),
  })
  taxpayerTokenUpdated(taxpayer: TaxpayerAccess, @TaxpayerIdArg _args: Arguments, view: TokenView) {
    return taxpayer.disclose(TaxpayerToken, 'record-shown', view); // access was checked again for this event
  }

  static reference(key: KeyReader, context: RequestContext) {
    return context.taxpayer(key('taxpayerId'), 'taxpayers:read', (taxpayer) => taxpayer.record());
  }

  /** Callers without this scope get null and FORBIDDEN for this field, and still get the rest of the record. */
  @OfTaxpayer('taxpayer-tokens:read')
  @Directive('@tag(name: "sensitive")')
  @NullOnlyWithError
  @FieldResolver(() => String, {
    nullable: true,
    description:
      "The access token for the service's endpoints of taxpayer data. Keep it confidential. Null only with an error, such as FORBIDDEN without the scope taxpayer-tokens:read.",
  })
  accessToken(taxpayer: TaxpayerAccess, _args: Arguments, token: TaxpayerToken) {
    return taxpayer.reveal(token);
  }

  @FieldResolver(() => Taxpayer, { description: 'The taxpayer whose token record this is.' })
  taxpayer(token: TaxpayerToken): Taxpayer {
    return new Taxpayer(token.taxpayerId);
  }
}
