// Hive Gateway: what of a caller's request goes on to the subgraphs, how subscriptions are asked for, and what a request may
// cost. A router takes documents apart and sends each field of a mutation by itself, so what the gateway refuses as a whole
// has to be refused here: the limits are those of MAX_TOKENS and MAX_DEPTH, 60 root fields and 5 of a mutation.

import { GraphQLError, Kind } from 'graphql';

const isProduction = process.env.NODE_ENV === 'production';

export const gatewayConfig = {
  // By the @cost of the subgraphs: 50 refresh jobs, or 100 token records.
  demandControl: { maxCost: 1000 },
  maxTokens: 2000,
  maxDepth: 12,
  csrfPrevention: { requestHeaders: ['apollo-require-preflight'] },
  ...(isProduction && { disableIntrospection: {}, graphiql: false, landingPage: false }),
  plugins: () => [{ onParse, onValidate, onSubgraphExecute }],
  propagateHeaders: {
    fromClientToSubgraphs({ request, subgraphName, context }) {
      // On a WebSocket, the token is among the parameters of the connection.
      const authorization = request.headers.get('authorization') ?? context?.connectionParams?.authorization;
      // The secret opens the gateway's doors of federation: no other subgraph may see it.
      const secret = subgraphName === 'taxpayers' && process.env.FEDERATION_SHARED_SECRET;
      return { ...(authorization && { authorization }), ...(secret && { 'x-gateway-router-secret': secret }) };
    },
  },
  transportEntries: {
    taxpayers: {
      options: {
        // By server-sent events: over a WebSocket, callers would not learn why they are refused.
        subscriptions: { kind: 'http', location: '/graphql/stream' },
      },
    },
  },
};

/** In production no message tells what the schema holds, which a list of words would recover, nor names the engine. */
function onParse() {
  return ({ result, replaceParseResult }) => {
    if (result instanceof Error && isProduction) replaceParseResult(new GraphQLError('The document cannot be parsed'));
  };
}

/** The same of mistakes; and the limit of root fields. */
function onValidate({ addValidationRule }) {
  addValidationRule(maxRootFields);
  return ({ valid, setResult }) => {
    if (!valid && isProduction) setResult([new GraphQLError('The document does not fit the schema or its limits')]);
  };
}

/** The error of a subgraph that cannot be reached holds the variables, which may be personal data, and is logged. */
function onSubgraphExecute() {
  return ({ result }) => {
    for (const { extensions } of result?.errors ?? []) delete extensions?.request?.body;
  };
}

function maxRootFields(context) {
  const counted = new Map(); // by fragment, so that a few which spread each other cost no more than their text
  const count = (selectionSet) =>
    selectionSet?.selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FIELD) return sum + 1;
      if (selection.kind === Kind.INLINE_FRAGMENT) return sum + count(selection.selectionSet);
      return sum + countFragment(selection.name.value);
    }, 0) ?? 0;
  const countFragment = (name) => {
    if (!counted.has(name)) {
      counted.set(name, 0); // within itself, a cycle adds nothing
      counted.set(name, count(context.getFragment(name)?.selectionSet));
    }
    return counted.get(name);
  };
  return {
    OperationDefinition(operation) {
      const most = operation.operation === 'mutation' ? 5 : 60;
      if (count(operation.selectionSet) <= most) return;
      context.reportError(new GraphQLError(`A ${operation.operation} must have at most ${most} fields`));
    },
  };
}
