/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { TypedDocumentNode as DocumentNode } from '../TypedDocumentNode.js';
/** State of a job that refreshes a taxpayer's data. */
export type RefreshJobStatus =
  /** The data is being refreshed. */
  | 'PROCESSING'
  /** The data is refreshed. Final: the status no longer changes. */
  | 'COMPLETED'
  /** The refresh failed. Final: the status no longer changes. */
  | 'FAILED'
  /** A status that the gateway does not know. Do not take it as final. */
  | 'UNRECOGNIZED';

/** Where the tax data of a taxpayer comes from. The operators of a gateway may name other values (PROVIDERS_FILE): generate types from the schema of your gateway. */
export type Provider =
  /** The tax authority itself. */
  | 'IRS'
  /** The tax authority, through a tax professional. */
  | 'IRS_TAX_PRO'
  /** The service's sandbox, whose data is not real. */
  | 'SERVICE_SANDBOX'
  /** A payroll or human-resources provider. */
  | 'HR'
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
  /** A provider that the gateway does not know. `providerId` has the value of the service. */
  | 'UNRECOGNIZED';

/** State of the tax authorization of a taxpayer. */
export type TaxpayerStatus =
  /** The taxpayer exists, and has not given consent yet. */
  | 'CREATED'
  /** The taxpayer gave consent to share tax data. */
  | 'CONSENT_RECEIVED'
  /** The signed authorization form was sent to the tax authority. */
  | 'TAX_AUTHORIZATION_SUBMITTED'
  /** The tax authority accepted the authorization. */
  | 'AUTHORIZED'
  /** The authorization was refused. Final: the status no longer changes. */
  | 'REJECTED'
  /** The authorization has served its purpose. Final: the status no longer changes. */
  | 'COMPLETED'
  /** A status that the gateway does not know. Do not take it as final. */
  | 'UNRECOGNIZED';

/** Input of `createClientLink`. Fields that you leave out, or set to null, are not sent to the service. */
export type CreateClientLinkInput = {
  /** A text of your choice, such as an order number, that makes the mutation safe to retry: for 24 hours, the same key and input return the first link instead of creating a second one. */
  idempotencyKey?: string | null | undefined;
  /** Your own data about the taxpayer, for example ids in other systems. The service stores it, and `TaxpayerToken.metadata` returns it unchanged. Send a number of 2^53 or more as a string: JSON would lose digits of most of them, so all are refused. A decimal keeps the 15 significant digits of a double; send one with more as a string. */
  metadata?: Record<string, unknown> | null | undefined;
  /** How the hosted flow behaves for this link. */
  settings?: ClientLinkSettingsInput | null | undefined;
};

/** How the hosted flow behaves for one link. */
export type ClientLinkSettingsInput = {
  /** Which flow to run, for example "full". The service defines the values. */
  flowType?: string | null | undefined;
  /** Which tax transcripts to request. */
  transcripts?: TranscriptsInput | null | undefined;
  /** What is already filled in when the taxpayer opens the hosted flow. */
  prefillData?: PrefillDataInput | null | undefined;
};

/** Which tax transcripts to request, by kind. The service defines the items of each list. */
export type TranscriptsInput = {
  /** Which ACTR items to request; values are defined by the service. */
  actr?: Array<string> | null | undefined;
  /** Which RECA items to request; values are defined by the service. */
  reca?: Array<string> | null | undefined;
  /** Which WAID items to request; values are defined by the service. */
  waid?: Array<string> | null | undefined;
  /** Which VENF items to request; values are defined by the service. */
  venf?: Array<string> | null | undefined;
  /** Which W2 items to request; values are defined by the service. */
  w2?: Array<string> | null | undefined;
  /** Which 1095-A items to request; values are defined by the service. */
  form1095A?: Array<string> | null | undefined;
  /** Which NOTICE items to request; values are defined by the service. */
  notice?: Array<string> | null | undefined;
};

/** What is already filled in when the taxpayer opens the hosted flow. */
export type PrefillDataInput = {
  /** The person. */
  personalInfo?: PersonalInfoInput | null | undefined;
  /** The business. */
  businessInfo?: BusinessInfoInput | null | undefined;
  /** The address. */
  address?: AddressInput | null | undefined;
};

/** What you already know about a person. */
export type PersonalInfoInput = {
  /** First name. */
  firstName?: string | null | undefined;
  /** Last name. */
  lastName?: string | null | undefined;
  /** Social security number, as the service accepts it. Never logged or stored. */
  ssn?: string | null | undefined;
};

/** What you already know about a business. */
export type BusinessInfoInput = {
  /** Name of the business. */
  name?: string | null | undefined;
  /** Tax id, as the service accepts it. Never logged or stored. */
  taxId?: string | null | undefined;
  /** Kind of business. */
  type?: string | null | undefined;
  /** Phone number. */
  phone?: string | null | undefined;
  /** Title of the person who signs. */
  title?: string | null | undefined;
};

/** A postal address. */
export type AddressInput = {
  /** Street and number. */
  street?: string | null | undefined;
  /** Further address line, such as an apartment number. */
  other?: string | null | undefined;
  /** Name of the city. */
  city?: string | null | undefined;
  /** State. */
  state?: string | null | undefined;
  /** ZIP code. */
  zip?: string | null | undefined;
};

export type TaxpayerTokenQueryVariables = Exact<{
  taxpayerId: string | number;
  maxAgeSeconds?: number | null | undefined;
}>;


export type TaxpayerTokenQuery = { taxpayerToken: { taxpayerId: string, name: string | null, provider: Provider, providerId: string, status: TaxpayerStatus, metadata: Record<string, unknown> | null, createdAt: string | null, fetchedAt: string, stale: boolean } | null };

export type AccessTokenQueryVariables = Exact<{
  taxpayerId: string | number;
}>;


export type AccessTokenQuery = { taxpayerToken: { taxpayerId: string, accessToken: string | null } | null };

export type RefreshJobQueryVariables = Exact<{
  taxpayerId: string | number;
  jobId: string | number;
  waitSeconds?: number | null | undefined;
}>;


export type RefreshJobQuery = { refreshJob: { taxpayerId: string, jobId: string, name: string, status: RefreshJobStatus, observedAt: string } | null };

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