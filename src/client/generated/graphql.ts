/* eslint-disable */
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';
/** A postal address. */
export type AddressInput = {
  /** Name of the city. */
  city?: string | null | undefined;
  /** Further address line. */
  other?: string | null | undefined;
  /** State. */
  state?: string | null | undefined;
  /** Street and number. */
  street?: string | null | undefined;
  /** ZIP code. */
  zip?: string | null | undefined;
};

/** What is known of a business. */
export type BusinessInfoInput = {
  /** Name of the business. */
  name?: string | null | undefined;
  /** Phone number. */
  phone?: string | null | undefined;
  /** Tax id, in the form the service takes. Never logged or kept. */
  taxId?: string | null | undefined;
  /** Title of the person who signs. */
  title?: string | null | undefined;
  /** Kind of business. */
  type?: string | null | undefined;
};

/** How the hosted flow behaves. */
export type ClientLinkSettingsInput = {
  /** Which flow to run, for example "full". The service defines the values. */
  flowType?: string | null | undefined;
  /** What is already known of the taxpayer. */
  prefillData?: PrefillDataInput | null | undefined;
  /** Which transcripts to ask for. */
  transcripts?: TranscriptsInput | null | undefined;
};

/** What to create a client link with. What is left out is left out towards the service. */
export type CreateClientLinkInput = {
  /** Chosen by you: the same key and input within 24 hours give the first link again instead of a second one. */
  idempotencyKey?: string | null | undefined;
  /** Anything about the taxpayer, for example ids of other systems. Passed on unchanged; an integer beyond 2^53 that a JSON number would not bring unchanged is refused: send it as a string. */
  metadata?: Record<string, unknown> | null | undefined;
  /** How the hosted flow behaves. */
  settings?: ClientLinkSettingsInput | null | undefined;
};

/** What is known of a person. */
export type PersonalInfoInput = {
  /** First name. */
  firstName?: string | null | undefined;
  /** Last name. */
  lastName?: string | null | undefined;
  /** Social security number, in the form the service takes. Never logged or kept. */
  ssn?: string | null | undefined;
};

/** What the hosted flow shows already filled in. */
export type PrefillDataInput = {
  /** The address. */
  address?: AddressInput | null | undefined;
  /** The business. */
  businessInfo?: BusinessInfoInput | null | undefined;
  /** The person. */
  personalInfo?: PersonalInfoInput | null | undefined;
};

/** Where the tax data of a taxpayer comes from. */
export type Provider =
  /** A payroll or human-resources provider. */
  | 'HR'
  /** The tax authority, directly. */
  | 'IRS'
  /** The tax authority, by way of a tax professional. */
  | 'IRS_TAX_PRO'
  /** Third-party tax preparation product number 1. */
  | 'PREPARER_SOFTWARE_1'
  /** Third-party tax preparation product number 2. */
  | 'PREPARER_SOFTWARE_2'
  /** Third-party tax preparation product number 3. */
  | 'PREPARER_SOFTWARE_3'
  /** Third-party tax preparation product number 4. */
  | 'PREPARER_SOFTWARE_4'
  /** Third-party tax preparation product number 5. */
  | 'PREPARER_SOFTWARE_5'
  /** Third-party tax preparation product number 6. */
  | 'PREPARER_SOFTWARE_6'
  /** Third-party tax preparation product number 7. */
  | 'PREPARER_SOFTWARE_7'
  /** Third-party tax preparation product number 8. */
  | 'PREPARER_SOFTWARE_8'
  /** A further tax-preparation provider. */
  | 'PROVIDER_9'
  /** The sandbox provider; no real data. */
  | 'SERVICE_SANDBOX'
  /** A provider this gateway does not know yet; `providerId` has the value of the service. */
  | 'UNRECOGNIZED';

/** How far a refresh of a taxpayer's data has come. */
export type RefreshJobStatus =
  /** The data is refreshed; this does not change any more. */
  | 'COMPLETED'
  /** The refresh failed; this does not change any more. */
  | 'FAILED'
  /** The data is being refreshed. */
  | 'PROCESSING'
  /** A status this gateway does not know yet. */
  | 'UNRECOGNIZED';

/** How far the tax authorization of a taxpayer has come. */
export type TaxpayerStatus =
  /** The tax authority accepted the authorization. */
  | 'AUTHORIZED'
  /** The authorization and what it was for are done; this does not change any more. */
  | 'COMPLETED'
  /** The taxpayer agreed to share tax data. */
  | 'CONSENT_RECEIVED'
  /** The taxpayer exists; nothing was asked of them yet. */
  | 'CREATED'
  /** The authorization was refused; this does not change any more. */
  | 'REJECTED'
  /** The signed authorization form was sent to the tax authority. */
  | 'TAX_AUTHORIZATION_SUBMITTED'
  /** A status this gateway does not know yet. */
  | 'UNRECOGNIZED';

/** Which transcripts to ask for, by kind. What the items of each list mean is defined by the service. */
export type TranscriptsInput = {
  /** Items of the ACTR transcript. */
  actr?: Array<string> | null | undefined;
  /** Items of the 1095-A transcript. */
  form1095A?: Array<string> | null | undefined;
  /** Items of the NOTICE transcript. */
  notice?: Array<string> | null | undefined;
  /** Items of the RECA transcript. */
  reca?: Array<string> | null | undefined;
  /** Items of the VENF transcript. */
  venf?: Array<string> | null | undefined;
  /** Items of the W2 transcript. */
  w2?: Array<string> | null | undefined;
  /** Items of the WAID transcript. */
  waid?: Array<string> | null | undefined;
};

export type TaxpayerTokenQueryVariables = Exact<{
  taxpayerId: string | number;
  maxAgeSeconds?: number | null | undefined;
}>;


export type TaxpayerTokenQuery = { taxpayerToken: { taxpayerId: string, name: string | null, provider: Provider, providerId: string, status: TaxpayerStatus, metadata: Record<string, unknown> | null, createdAt: string | null, fetchedAt: string, stale: boolean } };

export type AccessTokenQueryVariables = Exact<{
  taxpayerId: string | number;
}>;


export type AccessTokenQuery = { taxpayerToken: { taxpayerId: string, accessToken: string } };

export type RefreshJobQueryVariables = Exact<{
  taxpayerId: string | number;
  jobId: string | number;
  waitSeconds?: number | null | undefined;
}>;


export type RefreshJobQuery = { refreshJob: { taxpayerId: string, jobId: string, name: string, status: RefreshJobStatus, observedAt: string } };

export type CreateClientLinkMutationVariables = Exact<{
  input: CreateClientLinkInput;
}>;


export type CreateClientLinkMutation = { createClientLink: { replayed: boolean, clientLink: { id: string, url: string } } };

export type RefreshJobUpdatedSubscriptionVariables = Exact<{
  taxpayerId: string | number;
  jobId: string | number;
}>;


export type RefreshJobUpdatedSubscription = { refreshJobUpdated: { taxpayerId: string, jobId: string, name: string, status: RefreshJobStatus, observedAt: string } };

export type TaxpayerTokenUpdatedSubscriptionVariables = Exact<{
  taxpayerId: string | number;
}>;


export type TaxpayerTokenUpdatedSubscription = { taxpayerTokenUpdated: { taxpayerId: string, name: string | null, provider: Provider, providerId: string, status: TaxpayerStatus, metadata: Record<string, unknown> | null, createdAt: string | null, fetchedAt: string, stale: boolean } };


export const TaxpayerTokenDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"TaxpayerToken"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"maxAgeSeconds"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerToken"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}},{"kind":"Argument","name":{"kind":"Name","value":"maxAgeSeconds"},"value":{"kind":"Variable","name":{"kind":"Name","value":"maxAgeSeconds"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"provider"}},{"kind":"Field","name":{"kind":"Name","value":"providerId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}},{"kind":"Field","name":{"kind":"Name","value":"createdAt"}},{"kind":"Field","name":{"kind":"Name","value":"fetchedAt"}},{"kind":"Field","name":{"kind":"Name","value":"stale"}}]}}]}}]} as unknown as DocumentNode<TaxpayerTokenQuery, TaxpayerTokenQueryVariables>;
export const AccessTokenDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"AccessToken"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerToken"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"accessToken"}}]}}]}}]} as unknown as DocumentNode<AccessTokenQuery, AccessTokenQueryVariables>;
export const RefreshJobDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"query","name":{"kind":"Name","value":"RefreshJob"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"jobId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"waitSeconds"}},"type":{"kind":"NamedType","name":{"kind":"Name","value":"Int"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"refreshJob"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}},{"kind":"Argument","name":{"kind":"Name","value":"jobId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"jobId"}}},{"kind":"Argument","name":{"kind":"Name","value":"waitSeconds"},"value":{"kind":"Variable","name":{"kind":"Name","value":"waitSeconds"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"jobId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"observedAt"}}]}}]}}]} as unknown as DocumentNode<RefreshJobQuery, RefreshJobQueryVariables>;
export const CreateClientLinkDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"mutation","name":{"kind":"Name","value":"CreateClientLink"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"input"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"CreateClientLinkInput"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"createClientLink"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"input"},"value":{"kind":"Variable","name":{"kind":"Name","value":"input"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"clientLink"},"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"id"}},{"kind":"Field","name":{"kind":"Name","value":"url"}}]}},{"kind":"Field","name":{"kind":"Name","value":"replayed"}}]}}]}}]} as unknown as DocumentNode<CreateClientLinkMutation, CreateClientLinkMutationVariables>;
export const RefreshJobUpdatedDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"RefreshJobUpdated"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}},{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"jobId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"refreshJobUpdated"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}},{"kind":"Argument","name":{"kind":"Name","value":"jobId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"jobId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"jobId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"observedAt"}}]}}]}}]} as unknown as DocumentNode<RefreshJobUpdatedSubscription, RefreshJobUpdatedSubscriptionVariables>;
export const TaxpayerTokenUpdatedDocument = {"kind":"Document","definitions":[{"kind":"OperationDefinition","operation":"subscription","name":{"kind":"Name","value":"TaxpayerTokenUpdated"},"variableDefinitions":[{"kind":"VariableDefinition","variable":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}},"type":{"kind":"NonNullType","type":{"kind":"NamedType","name":{"kind":"Name","value":"ID"}}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerTokenUpdated"},"arguments":[{"kind":"Argument","name":{"kind":"Name","value":"taxpayerId"},"value":{"kind":"Variable","name":{"kind":"Name","value":"taxpayerId"}}}],"selectionSet":{"kind":"SelectionSet","selections":[{"kind":"Field","name":{"kind":"Name","value":"taxpayerId"}},{"kind":"Field","name":{"kind":"Name","value":"name"}},{"kind":"Field","name":{"kind":"Name","value":"provider"}},{"kind":"Field","name":{"kind":"Name","value":"providerId"}},{"kind":"Field","name":{"kind":"Name","value":"status"}},{"kind":"Field","name":{"kind":"Name","value":"metadata"}},{"kind":"Field","name":{"kind":"Name","value":"createdAt"}},{"kind":"Field","name":{"kind":"Name","value":"fetchedAt"}},{"kind":"Field","name":{"kind":"Name","value":"stale"}}]}}]}}]} as unknown as DocumentNode<TaxpayerTokenUpdatedSubscription, TaxpayerTokenUpdatedSubscriptionVariables>;