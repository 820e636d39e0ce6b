import { GraphQLURL } from 'graphql-scalars';
import { Directive, ID, InputType, ObjectType } from 'type-graphql';
import { idempotencyHours } from '../datasources/ClientLinks.js';
import { Always, JSONObject, Optional, Personal, personalData } from './Vocabulary.js';

@ObjectType('ClientLink', {
  description:
    'A link to the hosted flow: the web pages of the service on which a taxpayer gives consent and signs the tax-authorization form.',
})
@Directive('@key(fields: "id", resolvable: false)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class ClientLink {
  @Always(() => ID, "The link's id, assigned by the service.") readonly id!: string;
  @Directive('@tag(name: "sensitive")')
  @Always(() => GraphQLURL, 'Where to send the taxpayer. Confidential: anybody who has it can open the flow.')
  readonly url!: string;
}

@ObjectType('CreateClientLinkPayload', { description: 'Result of `createClientLink`.' })
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class CreateClientLinkPayload {
  @Always(() => ClientLink, 'The link, created now or by an earlier request.') readonly clientLink!: ClientLink;
  @Always(() => Boolean, 'True when an earlier request with the same `idempotencyKey` created the link.')
  readonly replayed!: boolean;
}

type Text = string | null;
type Texts = readonly string[] | null;

@InputType('TranscriptsInput', {
  description: 'Which tax transcripts to request, by kind. The service defines the items of each list.',
})
export class TranscriptsInput {
  @Optional(() => [String], 'Which ACTR items to request; values are defined by the service.') readonly actr?: Texts;
  @Optional(() => [String], 'Which RECA items to request; values are defined by the service.') readonly reca?: Texts;
  @Optional(() => [String], 'Which WAID items to request; values are defined by the service.') readonly waid?: Texts;
  @Optional(() => [String], 'Which VENF items to request; values are defined by the service.') readonly venf?: Texts;
  @Optional(() => [String], 'Which W2 items to request; values are defined by the service.') readonly w2?: Texts;
  @Optional(() => [String], 'Which 1095-A items to request; values are defined by the service.')
  readonly form1095A?: Texts;
  @Optional(() => [String], 'Which NOTICE items to request; values are defined by the service.')
  readonly notice?: Texts;
}

@InputType('PersonalInfoInput', { description: 'What you already know about a person.' })
@Directive(personalData)
export class PersonalInfoInput {
  @Personal(() => String, 'First name.') readonly firstName?: Text;
  @Personal(() => String, 'Last name.') readonly lastName?: Text;
  @Personal(() => String, 'Social security number, as the service accepts it. Never logged or stored.')
  readonly ssn?: Text;
}

@InputType('BusinessInfoInput', { description: 'What you already know about a business.' })
@Directive(personalData)
export class BusinessInfoInput {
  @Personal(() => String, 'Name of the business.') readonly name?: Text;
  @Personal(() => String, 'Tax id, as the service accepts it. Never logged or stored.') readonly taxId?: Text;
  @Personal(() => String, 'Kind of business.') readonly type?: Text;
  @Personal(() => String, 'Phone number.') readonly phone?: Text;
  @Personal(() => String, 'Title of the person who signs.') readonly title?: Text;
}

@InputType('AddressInput', { description: 'A postal address.' })
@Directive(personalData)
export class AddressInput {
  @Personal(() => String, 'Street and number.') readonly street?: Text;
  @Personal(() => String, 'Further address line, such as an apartment number.') readonly other?: Text;
  @Personal(() => String, 'Name of the city.') readonly city?: Text;
  @Personal(() => String, 'State.') readonly state?: Text;
  @Personal(() => String, 'ZIP code.') readonly zip?: Text;
}

@InputType('PrefillDataInput', { description: 'What is already filled in when the taxpayer opens the hosted flow.' })
@Directive(personalData)
export class PrefillDataInput {
  @Personal(() => PersonalInfoInput, 'The person.') readonly personalInfo?: PersonalInfoInput | null;
  @Personal(() => BusinessInfoInput, 'The business.') readonly businessInfo?: BusinessInfoInput | null;
  @Personal(() => AddressInput, 'The address.') readonly address?: AddressInput | null;
}

@InputType('ClientLinkSettingsInput', { description: 'How the hosted flow behaves for one link.' })
export class ClientLinkSettingsInput {
  @Optional(() => String, 'Which flow to run, for example "full". The service defines the values.')
  readonly flowType?: Text;
  @Optional(() => TranscriptsInput, 'Which tax transcripts to request.') readonly transcripts?: TranscriptsInput | null;
  @Personal(() => PrefillDataInput, 'What is already filled in when the taxpayer opens the hosted flow.')
  readonly prefillData?: PrefillDataInput | null;
}

@InputType('CreateClientLinkInput', {
  description: 'Input of `createClientLink`. Fields that you leave out, or set to null, are not sent to the service.',
})
export class CreateClientLinkInput {
  @Optional(
    () => String,
    `A text of your choice, such as an order number, that makes the mutation safe to retry: for ${idempotencyHours} hours, the same key and input return the first link instead of creating a second one.`,
  )
  readonly idempotencyKey?: Text;
  @Personal(
    () => JSONObject,
    'Your own data about the taxpayer, for example ids in other systems. The service stores it, and `TaxpayerToken.metadata` returns it unchanged. Send an integer beyond 2^53 as a string: a JSON number that would lose digits is refused. A decimal keeps the 15 significant digits of a double; send one with more as a string.',
  )
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  @Optional(() => ClientLinkSettingsInput, 'How the hosted flow behaves for this link.')
  readonly settings?: ClientLinkSettingsInput | null;
}
