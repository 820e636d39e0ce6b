import 'reflect-metadata';
import { Field, InputType } from 'type-graphql';
import { JSONObject } from './JSONObject.js';

@InputType('TranscriptsInput', {
  description: 'Which transcripts to ask for, by kind. What the items of each list mean is defined by the service.',
})
export class TranscriptsInput {
  @Field(() => [String], { nullable: true, description: 'Items of the ACTR transcript.' })
  readonly actr?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the RECA transcript.' })
  readonly reca?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the WAID transcript.' })
  readonly waid?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the VENF transcript.' })
  readonly venf?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the W2 transcript.' })
  readonly w2?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the 1095-A transcript.' })
  readonly form1095A?: readonly string[] | null;

  @Field(() => [String], { nullable: true, description: 'Items of the NOTICE transcript.' })
  readonly notice?: readonly string[] | null;
}

@InputType('PersonalInfoInput', { description: 'What is known of a person.' })
export class PersonalInfoInput {
  @Field(() => String, { nullable: true, description: 'First name.' })
  readonly firstName?: string | null;

  @Field(() => String, { nullable: true, description: 'Last name.' })
  readonly lastName?: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'Social security number, in the form the service takes. Never logged or kept.',
  })
  readonly ssn?: string | null;
}

@InputType('BusinessInfoInput', { description: 'What is known of a business.' })
export class BusinessInfoInput {
  @Field(() => String, { nullable: true, description: 'Name of the business.' })
  readonly name?: string | null;

  @Field(() => String, { nullable: true, description: 'Tax id, in the form the service takes. Never logged or kept.' })
  readonly taxId?: string | null;

  @Field(() => String, { nullable: true, description: 'Kind of business.' })
  readonly type?: string | null;

  @Field(() => String, { nullable: true, description: 'Phone number.' })
  readonly phone?: string | null;

  @Field(() => String, { nullable: true, description: 'Title of the person who signs.' })
  readonly title?: string | null;
}

@InputType('AddressInput', { description: 'A postal address.' })
export class AddressInput {
  @Field(() => String, { nullable: true, description: 'Street and number.' })
  readonly street?: string | null;

  @Field(() => String, { nullable: true, description: 'Further address line.' })
  readonly other?: string | null;

  @Field(() => String, { nullable: true, description: 'City.' })
  readonly city?: string | null;

  @Field(() => String, { nullable: true, description: 'State.' })
  readonly state?: string | null;

  @Field(() => String, { nullable: true, description: 'ZIP code.' })
  readonly zip?: string | null;
}

@InputType('PrefillDataInput', { description: 'What the hosted flow shows already filled in.' })
export class PrefillDataInput {
  @Field(() => PersonalInfoInput, { nullable: true, description: 'The person.' })
  readonly personalInfo?: PersonalInfoInput | null;

  @Field(() => BusinessInfoInput, { nullable: true, description: 'The business.' })
  readonly businessInfo?: BusinessInfoInput | null;

  @Field(() => AddressInput, { nullable: true, description: 'The address.' })
  readonly address?: AddressInput | null;
}

@InputType('ClientLinkSettingsInput', { description: 'How the hosted flow behaves.' })
export class ClientLinkSettingsInput {
  @Field(() => String, {
    nullable: true,
    description: 'Which flow to run, for example "full". The service defines the values.',
  })
  readonly flowType?: string | null;

  @Field(() => TranscriptsInput, { nullable: true, description: 'Which transcripts to ask for.' })
  readonly transcripts?: TranscriptsInput | null;

  @Field(() => PrefillDataInput, { nullable: true, description: 'What is already known of the taxpayer.' })
  readonly prefillData?: PrefillDataInput | null;
}

@InputType('CreateClientLinkInput', {
  description: 'What to create a client link with. What is left out is left out towards the service.',
})
export class CreateClientLinkInput {
  @Field(() => String, {
    nullable: true,
    description:
      'Chosen by you: the same key and input within 24 hours give the first link again instead of a second one.',
  })
  readonly idempotencyKey?: string | null;

  @Field(() => JSONObject, {
    nullable: true,
    description:
      'Anything about the taxpayer, for example ids of other systems. Passed on unchanged; an integer beyond 2^53 that a JSON number would not bring unchanged is refused: send it as a string.',
  })
  readonly metadata?: Readonly<Record<string, unknown>> | null;

  @Field(() => ClientLinkSettingsInput, { nullable: true, description: 'How the hosted flow behaves.' })
  readonly settings?: ClientLinkSettingsInput | null;
}
