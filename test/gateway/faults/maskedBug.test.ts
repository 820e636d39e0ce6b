import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Field, ObjectType, Query, Resolver } from 'type-graphql';
import { postQuery } from '../../support/gateway.js';
import { type GatewayOfResolvers, startGatewayOf } from '../../support/gatewayOfResolvers.js';
import { transports } from '../../support/transports.js';
import { until } from '../../support/until.js';

const planted = 'planted-in-a-bug';

@ObjectType({ description: 'Something with bugs in it.' })
class Buggy {
  @Field(() => String, { description: 'Is never there.' })
  missing!: string;
}

/** Bugs of every kind a resolver can have. */
@Resolver(() => Buggy)
class BuggyResolver {
  @Query(() => String, { nullable: true, description: 'Throws.' })
  throws(): string {
    throw new Error(planted, { cause: new Error(planted) });
  }

  @Query(() => String, { nullable: true, description: 'Rejects with no error at all.' })
  async rejects(): Promise<string> {
    throw planted;
  }

  @Query(() => Buggy, { nullable: true, description: 'Lacks what it promised.' })
  lacks(): object {
    return {};
  }
}

let gateway: GatewayOfResolvers;
let origin: string;
let logs: readonly string[];

beforeAll(async () => {
  gateway = await startGatewayOf([BuggyResolver]);
  ({ origin, logs } = gateway);
});
afterAll(() => gateway.stop());

describe('A bug of the gateway', () => {
  it.each(['{ throws }', '{ rejects }', '{ lacks { missing } }'])('in %s is masked, and logged once', async (query) => {
    const logged = logs.length;
    const answer = await postQuery(origin, query, {}, { 'x-request-id': 'the-request' });
    expect(answer.status).toBe(200);
    expect(answer.errors).toEqual([
      {
        message: 'Something went wrong in the gateway; its log has the request id',
        locations: expect.any(Array),
        path: expect.any(Array),
        extensions: { code: 'INTERNAL_SERVER_ERROR', retryable: false, requestId: 'the-request' },
      },
    ]);
    const lines = logs.slice(logged).filter((line) => line.includes('"level":"error"'));
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'error', requestId: 'the-request' });
    expect(logs.join('')).not.toContain(planted);
  });

  // No fault of the service and nothing a caller sends is known to cause one, so it is planted below the edge.
  it.each(Object.entries(transports))('is found in the log by its request id, over %s', async (_, send) => {
    const answer = await send({ origin }, JSON.stringify({ query: '{ throws }' }));
    expect(answer).toContain('"code":"INTERNAL_SERVER_ERROR"');
    const requestId = /"requestId":"([^"]+)"/.exec(answer)?.[1];
    const lines = () =>
      logs.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId && line.msg === 'operation');
    await until(() => lines().length > 0);
    const caller = expect.stringMatching(/^[\w-]{43}$/);
    expect(lines()).toMatchObject([{ codes: ['INTERNAL_SERVER_ERROR'], caller, cause: 'Error', outcome: 'failed' }]);
    const bugs = logs.filter(
      (line) => JSON.parse(line).requestId === requestId && line.includes('a bug of the gateway'),
    );
    expect(bugs).toHaveLength(1);
    expect(logs.join('')).not.toContain(planted);
  });

  it('does not take the rest of the answer with it', async () => {
    expect(await postQuery(origin, '{ throws __typename }')).toMatchObject({
      data: { throws: null, __typename: 'Query' },
    });
  });
});
