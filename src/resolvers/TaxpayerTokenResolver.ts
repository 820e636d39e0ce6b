import { Ctx, Directive, FieldResolver, Query, Resolver, Root } from 'type-graphql';
import type { RequestContext } from '../context.js';
import type { Key } from '../schema/buildSchema.js';
import { Taxpayer, TaxpayerToken } from '../schema/Taxpayer.js';
import type { Vocabulary } from '../schema/Vocabulary.js';
import { MaxAgeSeconds, Needs, TaxpayerId } from './decorators.js';

@Resolver(() => TaxpayerToken)
export class TaxpayerTokenResolver {
  constructor(private readonly vocabulary: Vocabulary) {}

  @Needs('taxpayers:read')
  @Query(() => TaxpayerToken, {
    nullable: true,
    description: 'The token record of a taxpayer. Usually answered without asking the service.',
  })
  taxpayerToken(@TaxpayerId taxpayerId: string, @Ctx() context: RequestContext, @MaxAgeSeconds maxAgeSeconds?: number) {
    return this.vocabulary.show(TaxpayerToken, context.taxpayer(taxpayerId).token(maxAgeSeconds));
  }

  reference(key: Key, context: RequestContext) {
    context.require('taxpayers:read');
    return this.taxpayerToken(key('taxpayerId'), context);
  }

  /** Callers without its scope get null and FORBIDDEN here, and the rest of the record all the same. */
  @Needs('taxpayer-tokens:read')
  @Directive('@tag(name: "sensitive")')
  @FieldResolver(() => String, {
    nullable: true,
    description: "The token for the service's taxpayer data endpoints. Needs the scope taxpayer-tokens:read.",
  })
  accessToken(@Root() token: TaxpayerToken, @Ctx() context: RequestContext): string {
    context.taxpayer(token.taxpayerId).noteReveal();
    return token.secretToken.reveal();
  }

  @FieldResolver(() => Taxpayer, { description: 'The taxpayer the token is about.' })
  taxpayer(@Root() token: TaxpayerToken): Taxpayer {
    return { id: token.taxpayerId };
  }
}
