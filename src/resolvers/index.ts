import { ClientLinkResolver } from './ClientLinkResolver.js';
import { RefreshJobResolver } from './RefreshJobResolver.js';
import { TaxpayerResolver, TaxpayerTokenResolver } from './TaxpayerResolver.js';

/** Every resolver class, in the order of the printed schema. */
export const resolvers = [TaxpayerResolver, TaxpayerTokenResolver, RefreshJobResolver, ClientLinkResolver];
