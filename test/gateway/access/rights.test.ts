import { type Environment, startTestGateway, startTrustedProvider } from '../../support/gateway.js';

// What a token's claims give: its bearer asks for two taxpayers, which needs the scope and the taxpayer.

type Claims = Readonly<Record<string, unknown>>;
const read = 'taxpayers:read';

const provider = await startTrustedProvider();

async function seen(claims: Claims, env: Environment = {}) {
  const gateway = await startTestGateway({ ...provider.env, ...env });
  const query = '{ t1: taxpayer(id: "t1") { id } t2: taxpayer(id: "t2") { id } }';
  const authorization = `Bearer ${await provider.token(claims)}`;
  const { data } = await gateway.query<Record<string, unknown>>(query, {}, { authorization });
  return ['t1', 't2'].filter((id) => data?.[id]).join(' and ') || 'nobody';
}

describe('The bearer sees', () => {
  const t1 = { taxpayer_ids: ['t1'] };
  it.each<[string, string, Claims]>([
    ['t1', 'by scopes as text', { scope: `openid ${read}`, ...t1 }],
    ['t1', 'by scopes as a list', { scope: [read, 7, null], ...t1 }],
    ['t1', 'by scp as text', { scp: `${read} refresh-jobs:read`, ...t1 }],
    ['nobody', 'by scp beside an empty scope, which comes first', { scope: '', scp: [read], ...t1 }],
    ['nobody', 'without a scope', t1],
    ['nobody', 'by scopes in other letters', { scope: 'Taxpayers:Read admin constructor __proto__ *', ...t1 }],
    ['nobody', 'by several scopes in one member of a list', { scope: [`${read} taxpayers:any`], ...t1 }],
    ['nobody', 'by scopes in an object', { scope: { [read]: true, length: 1 }, ...t1 }],
    ['t1 and t2', 'who is listed', { scope: read, taxpayer_ids: ['t1', 't1', 't2'] }],
    ['t1', 'one that is no list', { scope: read, taxpayer_ids: 't1' }],
    ['nobody', 'by a list with a number', { scope: read, taxpayer_ids: ['t1', 2] }],
    ['nobody', 'by an object', { scope: read, taxpayer_ids: { 0: 't1', length: 1 } }],
    ['nobody', 'by a star', { scope: read, taxpayer_ids: ['*', 'any'] }],
    ['t1 and t2', 'by the scope for all', { scope: `${read} taxpayers:any`, ...t1 }],
  ])('%s %s', async (expected, _, claims) => {
    expect(await seen(claims)).toBe(expected);
  });

  const AUTH_SCOPES_MAP = `{"Reader":"${read}","Tax Clerk":["${read}","taxpayers:any"],"taxpayers:any":[]}`;
  it.each<[string, string, Claims]>([
    ['t1', 'roles', { roles: [read], scope: 'taxpayers:any' }],
    ['t1', 'scp,roles', { scp: read, roles: ['Tax Clerk'] }],
    ['t1', 'realm_access.roles', { realm_access: { roles: [read] } }],
    ['t1', 'r.my.app.roles', { r: { 'my.app': { roles: [read] } } }],
    ['nobody', 'a', { a: { roles: ['Tax Clerk'] } }],
    ['nobody', 'a.constructor.name', { a: {} }],
    ['t1', 'a.b,scope', { a: null, scope: read }],
    ['nobody', 'a,scope', { a: null, scope: 'Tax Clerk' }],
    ['t1', 'roles', { roles: ['Reader', 'unknown'] }],
    ['t1 and t2', 'roles', { roles: ['Tax Clerk'] }],
    ['t1', 'roles', { roles: ['Reader', 'taxpayers:any'] }],
    ['nobody', 'roles', { roles: ['__proto__', 'constructor', 'toString'] }],
  ])('%s by AUTH_SCOPES_CLAIM=%s, AUTH_SCOPES_MAP and %j', async (expected, AUTH_SCOPES_CLAIM, claims) => {
    expect(await seen({ ...claims, ...t1 }, { AUTH_SCOPES_CLAIM, AUTH_SCOPES_MAP })).toBe(expected);
  });

  it.each<[string, string, Claims]>([
    ['t1', 'firm.clients', { firm: { clients: ['t1'] }, taxpayer_ids: ['t2'] }],
    ['nobody', '__proto__', {}],
    ['t1', 'constructor', { constructor: ['t1'] }],
  ])('%s by AUTH_TAXPAYERS_CLAIM=%s and %j', async (expected, AUTH_TAXPAYERS_CLAIM, claims) => {
    expect(await seen({ scope: read, ...claims }, { AUTH_TAXPAYERS_CLAIM })).toBe(expected);
  });
});
