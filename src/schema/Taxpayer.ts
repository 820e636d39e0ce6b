import { GraphQLDateTime } from 'graphql-scalars';
import { Directive, ID, ObjectType } from 'type-graphql';
import type { Secret } from '../config/secret.js';
import type { TokenView } from '../datasources/tokenAnswer.js';
import { GatewayError } from '../errors/errors.js';
import { SharedObject } from '../operations/plans/SharedObject.js';
import { Provider } from './Provider.js';
import { Always, JSONObject, Optional, openEnum, Personal, Timestamp, type Vocabulary } from './Vocabulary.js';

/** The service's statuses (interface, 3.1). */
export const TaxpayerStatus = openEnum('TaxpayerStatus', 'How far the tax authorization of a taxpayer has come.', {
  CREATED: 'The taxpayer exists; nothing was asked of them yet.',
  CONSENT_RECEIVED: 'The taxpayer agreed to share tax data.',
  TAX_AUTHORIZATION_SUBMITTED: 'The signed authorization form was sent to the tax authority.',
  AUTHORIZED: 'The tax authority accepted the authorization.',
  REJECTED: 'The authorization was refused; this does not change any more.',
  COMPLETED: 'The authorization and what it was for are done; this does not change any more.',
});
export type TaxpayerStatus = keyof typeof TaxpayerStatus;

@ObjectType('Taxpayer', {
  description: 'A person or business whose tax data can be authorized. Other subgraphs may extend it by its id.',
})
@Directive('@key(fields: "id")')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class Taxpayer {
  @Always(() => ID, "The service's id of the taxpayer.") readonly id!: string;
}

@ObjectType('TaxpayerToken', {
  description: "A taxpayer's token record: who they are, how far the authorization is, and the token itself.",
})
@Directive('@key(fields: "taxpayerId")')
@Directive('@cost(weight: 10)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class TaxpayerToken extends SharedObject {
  @Always(() => ID, "The service's id of the taxpayer.") readonly taxpayerId: string;

  /** Revealed only by the resolver of `accessToken`, which needs a scope of its own. */
  readonly secretToken: Secret;
  @Personal(() => String, 'Name of the taxpayer. Null when the service has none.') readonly name: string | null;
  @Personal(
    () => JSONObject,
    'The metadata given when the taxpayer was created, unchanged. Null when none was given, and with UPSTREAM_INVALID_RESPONSE, which names the place, when it has an integer beyond 2^53 that a JSON number would not bring unchanged.',
  )
  readonly metadata: Readonly<Record<string, unknown>> | null | GatewayError;
  @Optional(() => GraphQLDateTime, 'When the service created the taxpayer. Null when the service does not say.')
  readonly createdAt: Date | null;
  @Always(() => Provider, 'Where the tax data comes from. UNRECOGNIZED for a value that is new to the gateway.')
  readonly provider: string;
  @Always(() => String, "The service's own value of the provider, also when `provider` is UNRECOGNIZED.")
  readonly providerId: string;
  @Always(
    () => TaxpayerStatus,
    'How far the authorization has come. UNRECOGNIZED for a value that is new to the gateway.',
  )
  readonly status: TaxpayerStatus;
  @Always(() => GraphQLDateTime, 'When the gateway read this record from the service.') readonly fetchedAt: Date;
  @Always(
    () => Boolean,
    'True when the record is past its freshness and shown because the service could not answer, or when the service has refused its token since.',
  )
  readonly stale: boolean;

  constructor({ record, fetchedAt, stale }: TokenView, vocabulary: Vocabulary) {
    super();
    this.taxpayerId = record.taxpayerId;
    this.secretToken = record.accessToken;
    this.name = record.name;
    this.metadata = record.lostNumber === undefined ? record.metadata : lostIn(record.lostNumber);
    this.createdAt = record.createdAt === null ? null : new Timestamp(record.createdAt);
    this.provider = vocabulary.provider(record.providerId);
    this.providerId = record.providerId;
    this.status = vocabulary.nameOf('taxpayer-status', TaxpayerStatus, record.status);
    this.fetchedAt = new Timestamp(fetchedAt);
    this.stale = stale;
  }
}

/** The value of the field `metadata` when a number in it was lost: an error as a field's value makes the field null. */
function lostIn(path: string): GatewayError {
  const message = `metadata.${path} holds a number beyond 2^53 that would not arrive unchanged`;
  return new GatewayError('UPSTREAM_INVALID_RESPONSE', message, { reason: 'metadata: a number beyond 2^53' });
}
