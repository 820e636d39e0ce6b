// Packages of test/nightly, declared without types, so that the type check gives the same result whether or not they are
// installed.
declare module '@apollo/client';
declare module '@apollo/client/link/subscriptions';
declare module '@apollo/composition';
declare module '@apollo/gateway';
declare module '@urql/core';
declare module 'apollo-client-3/core';
declare module 'graphql-request';
declare module 'oidc-provider';
declare module '@wundergraph/composition';
