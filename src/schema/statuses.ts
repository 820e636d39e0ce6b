import { registerEnumType } from 'type-graphql';

/** Interface, 3.1, and what stands for a value that is not listed there. */
export const TaxpayerStatus = {
  CREATED: 'CREATED',
  CONSENT_RECEIVED: 'CONSENT_RECEIVED',
  TAX_AUTHORIZATION_SUBMITTED: 'TAX_AUTHORIZATION_SUBMITTED',
  AUTHORIZED: 'AUTHORIZED',
  REJECTED: 'REJECTED',
  COMPLETED: 'COMPLETED',
  UNRECOGNIZED: 'UNRECOGNIZED',
} as const;
export type TaxpayerStatus = keyof typeof TaxpayerStatus;

registerEnumType(TaxpayerStatus, {
  name: 'TaxpayerStatus',
  description: 'How far the tax authorization of a taxpayer has come.',
  valuesConfig: {
    CREATED: { description: 'The taxpayer exists; nothing was asked of them yet.' },
    CONSENT_RECEIVED: { description: 'The taxpayer agreed to share tax data.' },
    TAX_AUTHORIZATION_SUBMITTED: { description: 'The signed authorization form was sent to the tax authority.' },
    AUTHORIZED: { description: 'The tax authority accepted the authorization.' },
    REJECTED: { description: 'The authorization was refused; this does not change any more.' },
    COMPLETED: { description: 'The authorization and what it was for are done; this does not change any more.' },
    UNRECOGNIZED: { description: 'A status this gateway does not know yet.' },
  },
});

/** Interface, 3.2, and what stands for a value that is not listed there. */
export const RefreshJobStatus = {
  PROCESSING: 'PROCESSING',
  COMPLETED: 'COMPLETED',
  FAILED: 'FAILED',
  UNRECOGNIZED: 'UNRECOGNIZED',
} as const;
export type RefreshJobStatus = keyof typeof RefreshJobStatus;

registerEnumType(RefreshJobStatus, {
  name: 'RefreshJobStatus',
  description: "How far a refresh of a taxpayer's data has come.",
  valuesConfig: {
    PROCESSING: { description: 'The data is being refreshed.' },
    COMPLETED: { description: 'The data is refreshed; this does not change any more.' },
    FAILED: { description: 'The refresh failed; this does not change any more.' },
    UNRECOGNIZED: { description: 'A status this gateway does not know yet.' },
  },
});
