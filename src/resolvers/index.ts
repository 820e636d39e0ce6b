import { ClientLinkResolver } from './ClientLinkResolver.js';
import { RefreshJobResolver } from './RefreshJobResolver.js';
import { TaxpayerResolver, TaxpayerTokenResolver } from './TaxpayerResolver.js';

/** The resolvers of each type, by its name, in the order of the printed schema. */
export const resolvers = {
  Taxpayer: TaxpayerResolver,
  TaxpayerToken: TaxpayerTokenResolver,
  RefreshJob: RefreshJobResolver,
  ClientLink: ClientLinkResolver,
};
