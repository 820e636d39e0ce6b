import 'reflect-metadata';
import { GraphQLDateTime } from 'graphql-scalars';
import { Directive, Field, ID, ObjectType } from 'type-graphql';
import type { Secret } from '../config/secret.js';
import type { TaxpayerId } from '../datasources/identifiers.js';
import type { TokenView } from '../datasources/TokenBroker.js';
import { GatewayError } from '../errors/errors.js';
import { SharedObject } from '../operations/plans/SharedObject.js';
import { JSONObject } from './JSONObject.js';
import { Provider } from './Provider.js';
import { TaxpayerStatus } from './statuses.js';
import { Timestamp } from './Timestamp.js';
import type { Vocabulary } from './Vocabulary.js';

@ObjectType('TaxpayerToken', {
  description: "A taxpayer's token record: who they are, how far the authorization is, and the token itself.",
})
@Directive('@key(fields: "taxpayerId")')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class TaxpayerToken extends SharedObject {
  @Field(() => ID, { description: "The service's id of the taxpayer." })
  taxpayerId: TaxpayerId;

  /** Shown by a resolver of its own, with a scope of its own. */
  readonly secretToken: Secret;

  @Field(() => String, { nullable: true, description: 'Name of the taxpayer, when the service has one.' })
  name: string | null;

  @Field(() => JSONObject, {
    nullable: true,
    description:
      'The metadata given when the taxpayer was created, unchanged. Null and UPSTREAM_INVALID_RESPONSE, which names the place, when it has an integer beyond 2^53 that a JSON number would not bring unchanged.',
  })
  metadata: Readonly<Record<string, unknown>> | null | GatewayError;

  @Field(() => GraphQLDateTime, { nullable: true, description: 'When the service created the taxpayer.' })
  createdAt: Date | null;

  @Field(() => Provider, {
    description: 'Where the tax data comes from. UNRECOGNIZED for a value that is new to the gateway.',
  })
  provider: string;

  @Field(() => String, {
    description: "The service's own value of the provider, also when `provider` is UNRECOGNIZED.",
  })
  providerId: string;

  @Field(() => TaxpayerStatus, {
    description: 'How far the authorization has come. UNRECOGNIZED for a value that is new to the gateway.',
  })
  status: TaxpayerStatus;

  @Field(() => GraphQLDateTime, { description: 'When the gateway read this record from the service.' })
  fetchedAt: Date;

  @Field(() => Boolean, {
    description:
      'True when the record is past its freshness and shown because the service could not answer, or when the service has refused its token since.',
  })
  stale: boolean;

  /** The same object for the same view, so that a record that is shown often is translated once. */
  static of(view: TokenView, vocabulary: Vocabulary): TaxpayerToken {
    view.translated ??= new TaxpayerToken(view, vocabulary);
    return view.translated as TaxpayerToken;
  }

  private constructor(view: TokenView, vocabulary: Vocabulary) {
    super();
    const { record } = view;
    this.taxpayerId = record.taxpayerId as TaxpayerId;
    this.secretToken = record.accessToken;
    this.name = record.name;
    this.metadata = record.lostNumber === undefined ? record.metadata : lostIn(record.lostNumber);
    this.createdAt = record.createdAt === null ? null : new Timestamp(record.createdAt);
    this.provider = vocabulary.provider(record.providerId);
    this.providerId = record.providerId;
    this.status = vocabulary.taxpayerStatus(record.status);
    this.fetchedAt = new Timestamp(view.fetchedAt);
    this.stale = view.stale;
  }
}

/** An error as the value of a field makes that field null, by graphql-js and by a plan alike. */
function lostIn(path: string): GatewayError {
  const message = `metadata.${path} holds a number beyond 2^53 that would not arrive unchanged`;
  return new GatewayError('UPSTREAM_INVALID_RESPONSE', message);
}
