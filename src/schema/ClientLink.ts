import 'reflect-metadata';
import { GraphQLURL } from 'graphql-scalars';
import { Directive, Field, ID, ObjectType } from 'type-graphql';

@ObjectType('ClientLink', {
  description: 'A link to the hosted flow in which a taxpayer signs the tax-authorization form.',
})
@Directive('@key(fields: "id", resolvable: false)')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class ClientLink {
  @Field(() => ID, { description: "The service's id of the link." })
  id!: string;

  @Field(() => GraphQLURL, { description: 'Where to send the taxpayer. Anybody who has it can open the flow.' })
  url!: string;
}

@ObjectType('CreateClientLinkPayload', { description: 'The outcome of createClientLink.' })
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class CreateClientLinkPayload {
  @Field(() => ClientLink, { description: 'The link that was created, now or before.' })
  clientLink!: ClientLink;

  @Field(() => Boolean, {
    description: 'True when the link had been created before, with the same idempotencyKey and input.',
  })
  replayed!: boolean;
}
