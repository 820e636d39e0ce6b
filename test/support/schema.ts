import { resolvers } from '../../src/resolvers/index.js';
import { buildSchema } from '../../src/schema/buildSchema.js';

/** As the gateway serves it with the providers that it has built in. */
export const schema = buildSchema(resolvers);
