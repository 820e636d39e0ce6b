import { GraphQLURL } from 'graphql-scalars';
import { Directive, ID, InputType, ObjectType } from 'type-graphql';
import { Always, JSONObject, Optional, Personal, personalData } from './Vocabulary.js';

@ObjectType('ClientLink', {
  description: 'A link to the hosted flow in which a taxpayer signs the tax-authorization form.',
})
@Directive('@key(fields: "id", resolvable: false)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class ClientLink {
  @Always(() => ID, "The service's id of the link.") readonly id!: string;
  @Directive('@tag(name: "sensitive")')
  @Always(() => GraphQLURL, 'Where to send the taxpayer. Anybody who has it can open the flow.')
  readonly url!: string;
}

@ObjectType('CreateClientLinkPayload', { description: 'The outcome of createClientLink.' })
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class CreateClientLinkPayload {
  @Always(() => ClientLink, 'The link that was created, now or before.') readonly clientLink!: ClientLink;
  @Always(() => Boolean, 'True when the link had been created before, with the same idempotencyKey and input.')
  readonly replayed!: boolean;
}

type Text = string | null;
type Texts = readonly string[] | null;

@InputType('TranscriptsInput', {
  description: 'Which transcripts to ask for, by kind. What the items of each list mean is defined by the service.',
})
export class TranscriptsInput {
  @Optional(() => [String], 'Items of the ACTR transcript.') readonly actr?: Texts;
  @Optional(() => [String], 'Items of the RECA transcript.') readonly reca?: Texts;
  @Optional(() => [String], 'Items of the WAID transcript.') readonly waid?: Texts;
  @Optional(() => [String], 'Items of the VENF transcript.') readonly venf?: Texts;
  @Optional(() => [String], 'Items of the W2 transcript.') readonly w2?: Texts;
  @Optional(() => [String], 'Items of the 1095-A transcript.') readonly form1095A?: Texts;
  @Optional(() => [String], 'Items of the NOTICE transcript.') readonly notice?: Texts;
}

@InputType('PersonalInfoInput', { description: 'What is known of a person.' })
@Directive(personalData)
export class PersonalInfoInput {
  @Personal(() => String, 'First name.') readonly firstName?: Text;
  @Personal(() => String, 'Last name.') readonly lastName?: Text;
  @Personal(() => String, 'Social security number, in the form the service takes. Never logged or kept.')
  readonly ssn?: Text;
}

@InputType('BusinessInfoInput', { description: 'What is known of a business.' })
@Directive(personalData)
export class BusinessInfoInput {
  @Personal(() => String, 'Name of the business.') readonly name?: Text;
  @Personal(() => String, 'Tax id, in the form the service takes. Never logged or kept.') readonly taxId?: Text;
  @Personal(() => String, 'Kind of business.') readonly type?: Text;
  @Personal(() => String, 'Phone number.') readonly phone?: Text;
  @Personal(() => String, 'Title of the person who signs.') readonly title?: Text;
}

@InputType('AddressInput', { description: 'A postal address.' })
@Directive(personalData)
export class AddressInput {
  @Personal(() => String, 'Street and number.') readonly street?: Text;
  @Personal(() => String, 'Further address line.') readonly other?: Text;
  @Personal(() => String, 'Name of the city.') readonly city?: Text;
  @Personal(() => String, 'State.') readonly state?: Text;
  @Personal(() => String, 'ZIP code.') readonly zip?: Text;
}

@InputType('PrefillDataInput', { description: 'What the hosted flow shows already filled in.' })
@Directive(personalData)
export class PrefillDataInput {
  @Personal(() => PersonalInfoInput, 'The person.') readonly personalInfo?: PersonalInfoInput | null;
  @Personal(() => BusinessInfoInput, 'The business.') readonly businessInfo?: BusinessInfoInput | null;
  @Personal(() => AddressInput, 'The address.') readonly address?: AddressInput | null;
}

@InputType('ClientLinkSettingsInput', { description: 'How the hosted flow behaves.' })
export class ClientLinkSettingsInput {
  @Optional(() => String, 'Which flow to run, for example "full". The service defines the values.')
  readonly flowType?: Text;
  @Optional(() => TranscriptsInput, 'Which transcripts to ask for.') readonly transcripts?: TranscriptsInput | null;
  @Personal(() => PrefillDataInput, 'What is already known of the taxpayer.')
  readonly prefillData?: PrefillDataInput | null;
}

@InputType('CreateClientLinkInput', {
  description: 'What to create a client link with. What is left out is left out towards the service.',
})
export class CreateClientLinkInput {
  @Optional(
    () => String,
    'Chosen by you: the same key and input within 24 hours give the first link again instead of a second one.',
  )
  readonly idempotencyKey?: Text;
  @Personal(
    () => JSONObject,
    'Anything about the taxpayer, for example ids of other systems. Passed on unchanged; an integer beyond 2^53 that a JSON number would not bring unchanged is refused: send it as a string.',
  )
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  @Optional(() => ClientLinkSettingsInput, 'How the hosted flow behaves.')
  readonly settings?: ClientLinkSettingsInput | null;
}
