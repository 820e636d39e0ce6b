import type { ResolverClass } from '../schema/buildSchema.js';
import { ClientLinkResolver } from './ClientLinkResolver.js';
import { RefreshJobResolver } from './RefreshJobResolver.js';
import { TaxpayerResolver } from './TaxpayerResolver.js';
import { TaxpayerTokenResolver } from './TaxpayerTokenResolver.js';

/** Every resolver class, in the order of the printed schema. */
export const resolvers: readonly ResolverClass[] = [
  TaxpayerResolver,
  TaxpayerTokenResolver,
  RefreshJobResolver,
  ClientLinkResolver,
];
