import { Arg, Authorized, Ctx, Directive, FieldResolver, ID, Int, Query, Resolver, Root } from 'type-graphql';
import type { RequestContext } from '../context.js';
import { Taxpayer } from '../schema/Taxpayer.js';
import { TaxpayerToken } from '../schema/TaxpayerToken.js';
import { argumentDescriptions } from './argumentDescriptions.js';

@Resolver(() => TaxpayerToken)
export class TaxpayerTokenResolver {
  @Authorized('taxpayers:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["taxpayers:read"]])')
  @Query(() => TaxpayerToken, {
    nullable: true,
    description: 'The token record of a taxpayer. Usually answered without asking the service.',
  })
  taxpayerToken(
    @Arg('taxpayerId', () => ID, { description: argumentDescriptions.taxpayerId }) taxpayerId: string,
    @Ctx() context: RequestContext,
    @Arg('maxAgeSeconds', () => Int, { nullable: true, description: argumentDescriptions.maxAgeSeconds })
    maxAgeSeconds: number | undefined,
  ): TaxpayerToken | Promise<TaxpayerToken> {
    return context.taxpayerToken(taxpayerId, maxAgeSeconds);
  }

  /** A scope of its own: callers without it get null and FORBIDDEN here, and the rest of the record all the same. */
  @Authorized('taxpayer-tokens:read')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["taxpayer-tokens:read"]])')
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
