import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Field, ObjectType, Query, Resolver } from 'type-graphql';
import { Admission } from '../../src/admission/Admission.js';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { identifier } from '../../src/auth/identify.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { RequestContext } from '../../src/context.js';
import { GraphQLEndpoint } from '../../src/http/GraphQLEndpoint.js';
import { type Handler, HttpServer } from '../../src/http/HttpServer.js';
import { Unread } from '../../src/http/unread.js';
import { LiveEdge } from '../../src/live/LiveEdge.js';
import { OpenStreams } from '../../src/live/OpenStreams.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { whenOperationsEnd } from '../../src/observability/operatorLogs.js';
import { Pipeline } from '../../src/operations/Pipeline.js';
import { resolvers } from '../../src/resolvers/index.js';
import { buildSchema } from '../../src/schema/buildSchema.js';
import { defaultProviders } from '../../src/schema/Provider.js';
import { startServices } from '../../src/services.js';
import { postQuery } from '../support/gateway.js';
import { until } from '../support/redis.js';
import { transports } from '../support/transports.js';

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

let http: HttpServer;
let stop: () => Promise<void>;
let origin: string;
const logs: string[] = [];
/** Written apart from the rest of the log. */
const operations: string[] = [];

beforeAll(async () => {
  const config = loadConfig({ CACHE_URL: 'memory:' });
  const log = createLogger('info', { write: (line) => logs.push(line) });
  const metrics = new Metrics();
  const onBug = (error: unknown, requestId?: string) => log.error({ requestId, err: error }, 'a bug of the gateway');
  const upstream = {
    baseUrl: 'http://127.0.0.1:9',
    clientId: 'a',
    clientSecret: new Secret('b'),
    clientSecretFile: undefined,
  };
  const services = await startServices({
    config,
    upstream,
    tracing: undefined,
    log,
    logDestination: { write: (line) => operations.push(line) },
    metrics,
  });
  const schema = buildSchema({
    resolvers: [...resolvers, BuggyResolver],
    providers: defaultProviders,
  });
  const { ledger, sealed: store, workTime } = services;
  const { observeOperation: observe, onRequest, onExecution, onError } = metrics;
  const pipeline = new Pipeline({
    schema,
    contextFor: (facts, asked) => new RequestContext(facts, services, asked),
    admission: new Admission({ store, perMinute: 0, workTime }),
    ledger,
    limits: config.limits,
    introspection: true,
    trustedDocuments: undefined,
    planMode: 'off',
    hooks: {
      observe,
      onRequest,
      onExecution,
      onError,
      onBug,
      onEnd: whenOperationsEnd(services),
      toldFromMs: Infinity,
    },
    log,
  });
  await pipeline.start();
  const identify = identifier(new Authenticator({ mode: 'disabled' }), { accept: () => undefined });
  const given = { pipeline, identify, ledger, unread: new Unread(ledger) };
  const streams = new OpenStreams(() => {});
  const live = new LiveEdge({ ...given, streams, allowedOrigins: [], callbackOrigins: [], maxOperations: 10 });
  const endpoint = new GraphQLEndpoint(given, live);
  http = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    routes: new Map<string, Handler>([
      ['/graphql', (request, response) => endpoint.handle(request, response)],
      ['/graphql/stream', live.stream],
    ]),
    before: () => false,
  });
  http.onUpgrade((...upgrade) => live.upgrade(...upgrade));
  origin = `http://127.0.0.1:${await http.listen()}`;
  stop = async () => {
    await http.drain(0);
    await pipeline.stop();
    await services.stop();
  };
});
afterAll(() => stop());

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
    const lines = logs.slice(logged);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'error', requestId: 'the-request' });
    expect(lines[0]).not.toContain(planted);
  });

  // No fault of the service and nothing a caller sends is known to cause one, so it is planted below the edge.
  it.each(Object.entries(transports))('is found in the log by its request id, over %s', async (_, send) => {
    const answer = await send({ origin }, JSON.stringify({ query: '{ throws }' }));
    expect(answer).toContain('"code":"INTERNAL_SERVER_ERROR"');
    const requestId = /"requestId":"([^"]+)"/.exec(answer)?.[1];
    const lines = () => operations.map((line) => JSON.parse(line)).filter((line) => line.requestId === requestId);
    await until(() => lines().length > 0);
    const caller = expect.stringMatching(/^[\w-]{43}$/);
    expect(lines()).toMatchObject([{ codes: ['INTERNAL_SERVER_ERROR'], caller, cause: 'Error', outcome: 'errors' }]);
    expect(logs.filter((line) => JSON.parse(line).requestId === requestId)).toHaveLength(1);
    expect(operations.join('')).not.toContain(planted);
  });

  it('does not take the rest of the answer with it', async () => {
    expect(await postQuery(origin, '{ throws __typename }')).toMatchObject({
      data: { throws: null, __typename: 'Query' },
    });
  });
});
