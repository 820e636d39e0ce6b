import { GraphQLDateTime } from 'graphql-scalars';
import { Directive, ID, ObjectType } from 'type-graphql';
import type { Secret } from '../config/Secret.js';
import type { TokenView } from '../datasources/tokenAnswer.js';
import { GatewayError } from '../errors/errors.js';
import { Always, JSONObject, Optional, openEnum, Personal, PersonalText, Timestamp, unknownStatus } from './fields.js';
import { Provider } from './Provider.js';
import type { Vocabulary } from './Vocabulary.js';

/** The service's statuses (interface, 3.1). */
const TaxpayerStatus = openEnum('TaxpayerStatus', 'State of the tax authorization of a taxpayer.', {
  CREATED: 'The taxpayer exists, and has not given consent yet.',
  CONSENT_RECEIVED: 'The taxpayer gave consent to share tax data.',
  TAX_AUTHORIZATION_SUBMITTED: 'The signed authorization form was sent to the tax authority.',
  AUTHORIZED: 'The tax authority accepted the authorization.',
  REJECTED: 'The authorization was refused. Final: the status no longer changes.',
  COMPLETED: 'The authorization has served its purpose. Final: the status no longer changes.',
  UNRECOGNIZED: unknownStatus,
});
type TaxpayerStatus = keyof typeof TaxpayerStatus;

const orBroken = 'Also null, with an UPSTREAM_INVALID_RESPONSE error, when the service gives something else.';

@ObjectType('Taxpayer', {
  description: 'A person or business that can authorize access to its tax data. Other subgraphs extend it by `id`.',
})
@Directive('@key(fields: "id")')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class Taxpayer {
  readonly __typename = 'Taxpayer';
  @Always(() => ID, "The taxpayer's id, assigned by the service.") readonly id: string;

  constructor(id: string) {
    this.id = id;
  }
}

@ObjectType('TaxpayerToken', {
  description: "A taxpayer's token record: the name, the state of the authorization, and the access token.",
})
@Directive('@key(fields: "taxpayerId")')
@Directive('@cost(weight: 10)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class TaxpayerToken {
  readonly __typename = 'TaxpayerToken';
  @Always(() => ID, "The taxpayer's id, assigned by the service.") readonly taxpayerId: string;

  /** Revealed only by the resolver of `accessToken`, which needs a scope of its own. */
  readonly secretToken: Secret;
  @PersonalText(`Name of the taxpayer. Null when the service has no name. ${orBroken}`)
  readonly name: string | null | GatewayError;
  @Personal(
    () => JSONObject,
    `The metadata given when the taxpayer was created, unchanged; a decimal keeps the 15 significant digits of a double. Null when none was given. ${orBroken} The same holds for metadata with a number of 2^53 or more, which may have lost digits: the error names its place.`,
  )
  readonly metadata: Readonly<Record<string, unknown>> | null | GatewayError;
  @Optional(
    () => GraphQLDateTime,
    `When the service created the taxpayer. Null when the service does not say. ${orBroken}`,
  )
  readonly createdAt: Date | null | GatewayError;
  @Always(() => Provider, 'Where the tax data comes from. UNRECOGNIZED for a value that the gateway does not know.')
  readonly provider: string;
  @Always(() => String, 'The provider as the service names it. Use it when `provider` is UNRECOGNIZED.')
  readonly providerId: string;
  @Always(() => TaxpayerStatus, 'State of the authorization. UNRECOGNIZED for a value that the gateway does not know.')
  readonly status: TaxpayerStatus;
  @Always(() => GraphQLDateTime, 'When the gateway read this record from the service.') readonly fetchedAt: Date;
  @Always(
    () => Boolean,
    'True when the record may be out of date: it is no longer fresh, and the service could not be asked.',
  )
  readonly stale: boolean;

  constructor({ value: { record }, fetchedAt, stale = false }: TokenView, vocabulary: Vocabulary) {
    this.taxpayerId = record.taxpayerId;
    this.secretToken = record.accessToken;
    const { name, metadata, createdAt, faults } = record;
    this.name = name ?? broken(faults?.name);
    this.metadata = metadata ?? broken(faults?.metadata);
    this.createdAt = createdAt ? new Timestamp(createdAt) : broken(faults?.createdAt);
    this.provider = vocabulary.nameOf('provider', vocabulary.providers, record.providerId);
    this.providerId = record.providerId;
    this.status = vocabulary.nameOf('taxpayer-status', TaxpayerStatus, record.status);
    this.fetchedAt = new Timestamp(fetchedAt);
    this.stale = stale;
  }
}

/** The value of a field that is null: if what the service answered breaks its contract, graphql-js adds the error. */
function broken(fault?: { readonly message: string; readonly reason: string }): GatewayError | null {
  return fault ? new GatewayError('UPSTREAM_INVALID_RESPONSE', fault.message, { reason: fault.reason }) : null;
}
