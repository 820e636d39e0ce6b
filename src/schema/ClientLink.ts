import { GraphQLURL } from 'graphql-scalars';
import { Directive, ID, InputType, ObjectType } from 'type-graphql';
import { idempotencyHours } from '../datasources/ClientLinks.js';
import { Always, JSONObject, Optional, Personal, PersonalText, personalData } from './fields.js';

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

/** The items of one kind of transcript, by the service's name of the kind. */
const Items = (kind: string) =>
  Optional(() => [String], `Which ${kind} items to request; values are defined by the service.`);

@InputType('TranscriptsInput', {
  description: 'Which tax transcripts to request, by kind. The service defines the items of each list.',
})
class TranscriptsInput {
  @Items('ACTR') readonly actr?: Texts;
  @Items('RECA') readonly reca?: Texts;
  @Items('WAID') readonly waid?: Texts;
  @Items('VENF') readonly venf?: Texts;
  @Items('W2') readonly w2?: Texts;
  @Items('1095-A') readonly form1095A?: Texts;
  @Items('NOTICE') readonly notice?: Texts;
}

@InputType('PersonalInfoInput', { description: 'What you already know about a person.' })
@Directive(personalData)
class PersonalInfoInput {
  @PersonalText('First name.') readonly firstName?: Text;
  @PersonalText('Last name.') readonly lastName?: Text;
  @PersonalText('Social security number, as the service accepts it. Never logged or stored.') readonly ssn?: Text;
}

@InputType('BusinessInfoInput', { description: 'What you already know about a business.' })
@Directive(personalData)
class BusinessInfoInput {
  @PersonalText('Name of the business.') readonly name?: Text;
  @PersonalText('Tax id, as the service accepts it. Never logged or stored.') readonly taxId?: Text;
  @PersonalText('Kind of business.') readonly type?: Text;
  @PersonalText('Phone number.') readonly phone?: Text;
  @PersonalText('Title of the person who signs.') readonly title?: Text;
}

@InputType('AddressInput', { description: 'A postal address.' })
@Directive(personalData)
class AddressInput {
  @PersonalText('Street and number.') readonly street?: Text;
  @PersonalText('Further address line, such as an apartment number.') readonly other?: Text;
  @PersonalText('Name of the city.') readonly city?: Text;
  @PersonalText('State.') readonly state?: Text;
  @PersonalText('ZIP code.') readonly zip?: Text;
}

@InputType('PrefillDataInput', { description: 'What is already filled in when the taxpayer opens the hosted flow.' })
@Directive(personalData)
class PrefillDataInput {
  @Personal(() => PersonalInfoInput, 'The person.') readonly personalInfo?: PersonalInfoInput | null;
  @Personal(() => BusinessInfoInput, 'The business.') readonly businessInfo?: BusinessInfoInput | null;
  @Personal(() => AddressInput, 'The address.') readonly address?: AddressInput | null;
}

@InputType('ClientLinkSettingsInput', { description: 'How the hosted flow behaves for one link.' })
class ClientLinkSettingsInput {
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
    'Your own data about the taxpayer, for example ids in other systems. The service stores it, and `TaxpayerToken.metadata` returns it unchanged. Send a number of 2^53 or more as a string: JSON would lose digits of most of them, so all are refused. A decimal keeps the 15 significant digits of a double; send one with more as a string.',
  )
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  @Optional(() => ClientLinkSettingsInput, 'How the hosted flow behaves for this link.')
  readonly settings?: ClientLinkSettingsInput | null;
}
