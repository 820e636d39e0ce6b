import { type Attack, post, type Scene } from './Attack.js';

const forbidden = { status: 200, code: 'FORBIDDEN' } as const;

/** What: another's taxpayer by each path, and ids that are none. No path may tell whether the taxpayer exists. */
export async function objectAttacks(scene: Scene): Promise<Attack[]> {
  const authorization = `Bearer ${await scene.token()}`;
  return [
    ...foreignTaxpayers(scene, scene.other, 'another’s taxpayer', authorization),
    ...foreignTaxpayers(scene, scene.ghost, 'a taxpayer that does not exist', authorization),
    ...(await missingScopes(scene)),
    ...federationBorder(scene, authorization),
    ...(await malformedIds(scene)),
  ];
}

function foreignTaxpayers({ own, routerSecret }: Scene, id: string, who: string, authorization: string): Attack[] {
  const documents: Readonly<Record<string, string>> = {
    'by taxpayer': `{ taxpayer(id: "${id}") { id } }`,
    'by taxpayer.token': `{ taxpayer(id: "${id}") { token { name } } }`,
    'by taxpayer.refreshJob': `{ taxpayer(id: "${id}") { refreshJob(jobId: "j") { status } } }`,
    'by taxpayerToken': `{ taxpayerToken(taxpayerId: "${id}") { status } }`,
    'by taxpayerToken.accessToken': `{ taxpayerToken(taxpayerId: "${id}") { accessToken } }`,
    'by refreshJob': `{ refreshJob(taxpayerId: "${id}", jobId: "j") { status } }`,
    'by a long poll': `{ refreshJob(taxpayerId: "${id}", jobId: "j", waitSeconds: 5) { status } }`,
    'by an alias beside the own': `{ taxpayer(id: "${own}") { id } mine: taxpayer(id: "${id}") { id } }`,
    'by a fragment': `{ ...F } fragment F on Query { ...G } fragment G on Query { taxpayerToken(taxpayerId: "${id}") { name } }`,
    'by an inline fragment': `{ ... on Query { ... { taxpayerToken(taxpayerId: "${id}") { name } } } }`,
  };
  const entities: Readonly<Record<string, object>> = {
    'by _entities as Taxpayer': { __typename: 'Taxpayer', id },
    'by _entities as TaxpayerToken': { __typename: 'TaxpayerToken', taxpayerId: id },
    'by _entities as RefreshJob': { __typename: 'RefreshJob', taxpayerId: id, jobId: 'j' },
  };
  const routed = Object.entries(entities).map(([name, representation]) => {
    const sent = post(authorization, 'query($r: [_Any!]!) { _entities(representations: $r) { __typename } }', {
      r: [representation],
    });
    const headers = { ...sent.headers, 'x-gateway-router-secret': routerSecret };
    return { name: `${who} ${name}`, ...sent, headers, ...forbidden };
  });
  return [
    ...Object.entries(documents).map(([name, query]) => ({
      name: `${who} ${name}`,
      ...post(authorization, query),
      ...forbidden,
    })),
    ...routed,
  ];
}

async function missingScopes({ token, own }: Scene): Promise<Attack[]> {
  const none = `Bearer ${await token({ scope: '' })}`;
  const reader = `Bearer ${await token({ scope: 'taxpayers:read' })}`;
  const documents: Readonly<Record<string, readonly [string, string]>> = {
    'no scope for taxpayer': [none, `{ taxpayer(id: "${own}") { id } }`],
    'no scope for taxpayerToken': [none, `{ taxpayerToken(taxpayerId: "${own}") { name } }`],
    'no scope for refreshJob': [reader, `{ refreshJob(taxpayerId: "${own}", jobId: "j") { status } }`],
    'no scope for taxpayer.refreshJob': [reader, `{ taxpayer(id: "${own}") { refreshJob(jobId: "j") { status } } }`],
    'no scope for createClientLink': [reader, 'mutation { createClientLink(input: {}) { replayed } }'],
  };
  return Object.entries(documents).map(([name, [who, query]]) => ({ name, ...post(who, query), ...forbidden }));
}

function federationBorder({ own, routerSecret }: Scene, authorization: string): Attack[] {
  const service = '{ _service { sdl } }';
  const entities = `{ _entities(representations: [{ __typename: "Taxpayer", id: "${own}" }]) { __typename } }`;
  const with_ = (secret: string, query: string) => {
    const sent = post(authorization, query);
    return { ...sent, headers: { ...sent.headers, 'x-gateway-router-secret': secret } };
  };
  return [
    { name: '_service without the router’s secret', ...post(authorization, service), ...forbidden },
    { name: '_entities without the router’s secret', ...post(authorization, entities), ...forbidden },
    { name: '_service with a wrong secret', ...with_('x'.repeat(routerSecret.length), service), ...forbidden },
    { name: '_service with an empty secret', ...with_('', service), ...forbidden },
    { name: '_service with the start of the secret', ...with_(routerSecret.slice(0, -1), service), ...forbidden },
    {
      name: '_entities of a type that is none',
      ...with_(routerSecret, '{ _entities(representations: [{ __typename: "__Schema" }]) { __typename } }'),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: '_entities whose key is an object',
      ...with_(
        routerSecret,
        '{ _entities(representations: [{ __typename: "Taxpayer", id: { a: 1 } }]) { __typename } }',
      ),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: 'more representations than allowed',
      ...with_(
        routerSecret,
        `{ _entities(representations: [${`{ __typename: "Taxpayer", id: "${own}" }`.repeat(201)}]) { __typename } }`,
      ),
      status: 400,
      code: 'BAD_USER_INPUT',
    },
  ];
}

async function malformedIds({ token }: Scene): Promise<Attack[]> {
  const authorization = `Bearer ${await token({ scope: 'taxpayers:any taxpayers:read refresh-jobs:read' })}`;
  const ids: Readonly<Record<string, string>> = {
    'a dot segment': '..',
    'a path': '../../client-links',
    'an encoded path': '%2e%2e%2fclient-links',
    'a double-encoded path': '%252e%252e',
    'a backslash': '..\\x',
    'a query': 'x?admin=1',
    'a fragment': 'x#y',
    CRLF: 'x\r\nHost: evil.example',
    NUL: 'x\u0000y',
    'a lone surrogate': 'x\ud800',
    nothing: '',
    'white space alone': ' \u3000',
    'zero-width characters alone': '\u200b\u2060',
    'white space before it': ' x',
    '5,000 characters': 'x'.repeat(5000),
  };
  return Object.entries(ids).flatMap(([name, id]) => [
    {
      name: `a taxpayer id of ${name}`,
      ...post(authorization, 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }', { id }),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
    {
      name: `a job id of ${name}`,
      ...post(authorization, 'query($id: ID!) { refreshJob(taxpayerId: "t", jobId: $id) { name } }', { id }),
      status: 200,
      code: 'BAD_USER_INPUT',
    },
  ]);
}
