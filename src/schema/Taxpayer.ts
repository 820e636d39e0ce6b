import 'reflect-metadata';
import { Directive, Field, ID, ObjectType } from 'type-graphql';
import type { TaxpayerId } from '../datasources/identifiers.js';

@ObjectType('Taxpayer', {
  description: 'A person or business whose tax data can be authorized. Other subgraphs may extend it by its id.',
})
@Directive('@key(fields: "id")')
@Directive('@cacheControl(maxAge: 0, scope: PRIVATE)')
export class Taxpayer {
  @Field(() => ID, { description: "The service's id of the taxpayer." })
  id!: TaxpayerId;
}
