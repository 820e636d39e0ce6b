/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';
/** Where the tax data of a taxpayer comes from. The operators of a gateway may name other values (PROVIDERS_FILE): generate types from the schema of your gateway. */
export type Provider =
  /** A payroll or human-resources provider. */
  | 'HR'
  /** The tax authority itself. */
  | 'IRS'
  /** The tax authority, through a tax professional. */
  | 'IRS_TAX_PRO'
  /** Placeholder for the tax-preparation product number 1; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_1'
  /** Placeholder for the tax-preparation product number 2; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_2'
  /** Placeholder for the tax-preparation product number 3; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_3'
  /** Placeholder for the tax-preparation product number 4; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_4'
  /** Placeholder for the tax-preparation product number 5; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_5'
  /** Placeholder for the tax-preparation product number 6; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_6'
  /** Placeholder for the tax-preparation product number 7; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_7'
  /** Placeholder for the tax-preparation product number 8; the gateway's operators can name it. */
  | 'PREPARER_SOFTWARE_8'
  /** Placeholder for one more tax-preparation provider; the gateway's operators can name it. */
  | 'PROVIDER_9'
  /** The service's sandbox, whose data is not real. */
  | 'SERVICE_SANDBOX'
  /** A provider that the gateway does not know. `providerId` has the value of the service. */
  | 'UNRECOGNIZED';

/** State of the tax authorization of a taxpayer. */
export type TaxpayerStatus =
  /** The tax authority accepted the authorization. */
  | 'AUTHORIZED'
  /** The authorization has served its purpose. Final: the status no longer changes. */
  | 'COMPLETED'
  /** The taxpayer gave consent to share tax data. */
  | 'CONSENT_RECEIVED'
  /** The taxpayer exists, and has not given consent yet. */
  | 'CREATED'
  /** The authorization was refused. Final: the status no longer changes. */
  | 'REJECTED'
  /** The signed authorization form was sent to the tax authority. */
  | 'TAX_AUTHORIZATION_SUBMITTED'
  /** A status that the gateway does not know. Do not take it as final. */
  | 'UNRECOGNIZED';

export type TaxpayerQueryVariables = Exact<{
  taxpayerId: string | number;
}>;


export type TaxpayerQuery = { taxpayerToken: { taxpayerId: string, name: string | null, provider: Provider, status: TaxpayerStatus, fetchedAt: string, stale: boolean } | null };

export type TaxpayerChangesSubscriptionVariables = Exact<{
  taxpayerId: string | number;
}>;


export type TaxpayerChangesSubscription = { taxpayerTokenUpdated: { taxpayerId: string, name: string | null, provider: Provider, status: TaxpayerStatus, fetchedAt: string, stale: boolean } };

export type TaxpayerStateFragment = { taxpayerId: string, name: string | null, provider: Provider, status: TaxpayerStatus, fetchedAt: string, stale: boolean };

export const TaxpayerStateFragmentDoc = {"kind":"Document","definitions":[{"kind":"FragmentDefinition","name":{"kind":"Name","value":"TaxpayerState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"TaxpayerToken"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"provider"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"fetchedAt"}},{"kind":"Field","name":{"kind":"Name","value":"stale"}}]}}]} as unknown as DocumentNode<TaxpayerStateFragment, unknown>;
export const TaxpayerDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"Taxpayer"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerToken"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"TaxpayerState"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"TaxpayerState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"TaxpayerToken"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"provider"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"fetchedAt"}},{"kind":"Field","name":{"kind":"Name","value":"stale"}}]}}]} as unknown as DocumentNode<TaxpayerQuery, TaxpayerQueryVariables>;
export const TaxpayerChangesDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"TaxpayerChanges"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerTokenUpdated"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"FragmentSpread","name":{"kind":"Name","value":"TaxpayerState"}}]}}]}},{"kind":"FragmentDefinition","name":{"kind":"Name","value":"TaxpayerState"},"typeCondition":{"kind":"NamedType","name":{"kind":"Name","value":"TaxpayerToken"}},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"provider"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"fetchedAt"}},{"kind":"Field","name":{"kind":"Name","value":"stale"}}]}}]} as unknown as DocumentNode<TaxpayerChangesSubscription, TaxpayerChangesSubscriptionVariables>;