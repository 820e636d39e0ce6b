import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Arg, Field, InputType, Int, ObjectType, Query, Resolver, registerEnumType } from 'type-graphql';
import { postQuery } from '../support/gateway.js';
import { type GatewayOfResolvers, startGatewayOf } from '../support/gatewayOfResolvers.js';
import { until } from '../support/redis.js';

const deprecationReason = 'Use what is new.';

enum CabinKind {
  OLD = 'OLD',
  NEW = 'NEW',
}
registerEnumType(CabinKind, { name: 'CabinKind', valuesConfig: { OLD: { deprecationReason } } });

@InputType()
class CabinInput {
  @Field(() => Int, { nullable: true, deprecationReason })
  old?: number;

  @Field(() => Int, { nullable: true })
  fresh?: number;
}

@ObjectType()
class Cabin {
  @Field(() => String, { nullable: true, deprecationReason })
  old?: string;

  @Field(() => String, { nullable: true })
  fresh?: string;

  @Field(() => Cabin, { nullable: true })
  next?: Cabin;
}

@Resolver(() => Cabin)
class CabinResolver {
  @Query(() => Cabin, { nullable: true })
  cabin(
    @Arg('id', () => String, { nullable: true }) _id?: string,
    @Arg('old', () => String, { nullable: true, deprecationReason }) _old?: string,
    @Arg('kind', () => CabinKind, { nullable: true }) _kind?: CabinKind,
    @Arg('input', () => CabinInput, { nullable: true }) _input?: CabinInput,
  ): Cabin {
    return { next: {} };
  }

  @Query(() => String, { nullable: true, deprecationReason })
  hut(): string {
    return 'hut';
  }
}

let gateway: GatewayOfResolvers;
afterEach(() => gateway.stop());

describe.each(['on', 'off'] as const)('The line of an operation, with plans %s', (planMode) => {
  it.each<[string, string, readonly string[] | undefined]>([
    ['a root field', '{ hut }', ['Query.hut']],
    ['a field below', '{ cabin { next { next { old } } } }', ['Cabin.old']],
    [
      'a field in fragments',
      '{ cabin { ...F } } fragment F on Cabin { next { ... on Cabin { a: old } } }',
      ['Cabin.old'],
    ],
    ['an argument', '{ cabin(old: "x") { fresh } }', ['Query.cabin(old:)']],
    ['an input field', '{ cabin(input: { old: 1, fresh: 2 }) { fresh } }', ['CabinInput.old']],
    ['an enum value', '{ cabin(kind: OLD) { fresh } }', ['CabinKind.OLD']],
    [
      'all of it, each once',
      '{ cabin(old: "a", kind: OLD) { old b: old } hut }',
      ['Cabin.old', 'CabinKind.OLD', 'Query.cabin(old:)', 'Query.hut'],
    ],
    ['nothing', '{ cabin(id: "x", kind: NEW, input: { fresh: 1 }) { fresh next { fresh } } }', undefined],
  ])('tells that a document uses what is deprecated: %s', async (_, query, deprecated) => {
    gateway = await startGatewayOf([CabinResolver], { LOG_OPERATIONS: 'all' }, planMode);
    const asked = 4; // the later ones by a plan, if there is one
    for (let n = 0; n < asked; n += 1) expect((await postQuery(gateway.origin, query)).errors).toBeUndefined();
    const lines = () => gateway.operations.flatMap((text) => text.trim().split('\n')).map((line) => JSON.parse(line));
    await until(() => lines().length === asked);
    expect(lines().map((line) => line.deprecated)).toEqual(Array(asked).fill(deprecated));
  });

  it('tells it of one that fails as well', async () => {
    gateway = await startGatewayOf([CabinResolver], {}, planMode);
    await postQuery(gateway.origin, '{ hut taxpayerToken(taxpayerId: "one") { status } }');
    await until(() => gateway.operations.length > 0);
    expect(JSON.parse(gateway.operations[0] ?? '')).toMatchObject({ outcome: 'errors', deprecated: ['Query.hut'] });
  });
});
