// Packages that are installed only for the tests that need them (scripts/providePackages.js). They have no types here, so
// that the tests are checked alike whether they are installed or not.
declare module '@actions/workflow-parser';
declare module '@apollo/client';
declare module '@apollo/client/link/persisted-queries';
declare module '@apollo/client/link/subscriptions';
declare module '@apollo/composition';
declare module '@apollo/gateway';
declare module '@urql/core';
declare module 'apollo-client-3/core';
declare module 'gitlab-ci-local/*';
declare module 'graphql-request';
declare module 'kubernetes-models/*';
declare module 'oidc-provider';
declare module 'relay-runtime';
