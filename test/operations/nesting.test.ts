import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Arg, Field, InputType, Query, Resolver } from 'type-graphql';
import { postQuery } from '../support/gateway.js';
import { type GatewayOfResolvers, startGatewayOf } from '../support/gatewayOfResolvers.js';

@InputType({ description: 'A condition, or several.' })
class Filter {
  @Field(() => String, { nullable: true, description: 'A name.' })
  readonly name?: string;
  @Field(() => [Filter], { nullable: true, description: 'All of these.' })
  readonly and?: readonly Filter[];
}

@Resolver(() => String)
class Filtering {
  @Query(() => String, { description: 'How often a filter names something.' })
  names(@Arg('filter', () => Filter) filter: Filter): string {
    return String(JSON.stringify(filter).split('"name"').length - 1);
  }
}

describe('an input type that contains itself', () => {
  let gateway: GatewayOfResolvers;
  beforeAll(async () => {
    gateway = await startGatewayOf([Filtering]);
  });
  afterAll(() => gateway?.stop());

  const query = 'query($filter: Filter!) { names(filter: $filter) }';
  const filter = { name: 'a', and: [{ name: 'b', and: [{ name: 'c' }] }] };

  it('is read', async () => {
    expect(await postQuery(gateway.origin, query, { filter })).toMatchObject({ data: { names: '3' } });
  });

  it('is refused with the path of what does not fit', async () => {
    const answer = await postQuery(gateway.origin, query, { filter: { and: [{ and: [{ name: 1 }] }] } });
    expect(answer).toMatchObject({
      status: 400,
      errors: [{ extensions: { violations: [{ path: 'filter.and.0.and.0.name' }] } }],
    });
  });

  it('is read to the depth that variables may have', async () => {
    const nested = (depth: number): object => (depth === 0 ? {} : { and: nested(depth - 1) });
    expect((await postQuery(gateway.origin, query, { filter: nested(29) })).errors).toBeUndefined();
    expect(await postQuery(gateway.origin, query, { filter: nested(30) })).toMatchObject({ status: 400 });
  });
});
