// Hive Gateway: which headers go on to the subgraphs, how subscriptions are made, and what a request may cost. A router splits
// documents, and sends each field of a mutation by itself. So the gateway cannot limit the whole document, and this file does:
// by the defaults of MAX_TOKENS and MAX_DEPTH, 60 root fields, and 5 root fields of a mutation.

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
      const { Authorization, authorization: parameter = Authorization } = context?.connectionParams ?? {};
      const authorization = request.headers.get('authorization') ?? parameter;
      // With the secret anybody could call _service and _entities: no other subgraph may see it.
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

/** In production, errors neither show names of the schema (they could be guessed from a list of words) nor name the engine. */
function onParse() {
  return ({ result, replaceParseResult }) => {
    if (result instanceof Error && isProduction) replaceParseResult(new GraphQLError('The document cannot be parsed'));
  };
}

/** The same for documents that do not fit the schema; also limits root fields. */
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
  const counted = new Map(); // by fragment, so that each fragment is counted once, however often it is spread
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
