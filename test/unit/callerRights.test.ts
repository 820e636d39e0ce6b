import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Authenticator } from '../../src/auth/Authenticator.js';
import { anyone, type Caller, holderOf, localDeveloper, router } from '../../src/auth/caller.js';
import { type IdentityProvider, startIdentityProvider } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator } from '../support/jwtAuthenticator.js';

describe('the rights of a caller', () => {
  let provider: IdentityProvider;
  let authenticator: Authenticator;

  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
    authenticator = jwtAuthenticator([provider]);
  });

  afterAll(() => provider.stop());

  const authenticate = async (authorization?: string): Promise<Caller> => authenticator.authenticate(authorization);

  it.each<[string, Record<string, unknown>, string[]]>([
    ['scope as text', { scope: 'taxpayers:read client-links:create' }, ['client-links:create', 'taxpayers:read']],
    ['scope as list', { scope: ['taxpayers:read', 7, null] }, ['taxpayers:read']],
    ['scp as list', { scp: ['taxpayers:read'] }, ['taxpayers:read']],
    ['scp as text', { scp: 'taxpayers:read refresh-jobs:read' }, ['taxpayers:read', 'refresh-jobs:read']],
    ['scope before scp', { scope: 'taxpayers:read', scp: ['taxpayers:any'] }, ['taxpayers:read']],
    ['an empty scope before scp', { scope: '', scp: ['taxpayers:any'] }, []],
    ['neither', {}, []],
    ['unknown ones and other cases', { scope: 'Taxpayers:Read admin constructor __proto__ *' }, []],
    ['several in one member of a list', { scope: ['taxpayers:read taxpayers:any'] }, []],
    ['an object', { scope: { 'taxpayers:read': true, length: 1 } }, []],
  ])('reads %s', async (_, claims, expected) => {
    const { scopes } = await authenticate(bearer(await provider.token(claims)));
    expect([...scopes].sort()).toEqual([...expected].sort());
  });

  it.each<[string, Record<string, unknown>, string[] | 'any']>([
    ['a list', { taxpayer_ids: ['t1', 't1', 't2'] }, ['t1', 't2']],
    ['one id', { taxpayer_ids: 't1 t2' }, ['t1 t2']],
    ['names of a prototype', { taxpayer_ids: ['__proto__', 'constructor'] }, ['__proto__', 'constructor']],
    ['no claim', {}, []],
    ['an empty list', { taxpayer_ids: [] }, []],
    ['a list with a number', { taxpayer_ids: ['t1', 2] }, []],
    ['a list in a list', { taxpayer_ids: [['t1']] }, []],
    ['a list with an empty id', { taxpayer_ids: ['t1', ''] }, []],
    ['an id of 5,000 characters', { taxpayer_ids: 't'.repeat(5000) }, []],
    ['an object', { taxpayer_ids: { 0: 't1', length: 1 } }, []],
    ['true', { taxpayer_ids: true }, []],
    ['a star', { taxpayer_ids: ['*', 'any'] }, ['*', 'any']],
    ['the scope for all', { taxpayer_ids: ['t1'], scope: 'taxpayers:any' }, 'any'],
    ['a claim of the same name as the scope', { 'taxpayers:any': true }, []],
  ])('reads %s', async (_, claims, expected) => {
    const { taxpayers } = await authenticate(bearer(await provider.token(claims)));
    expect(taxpayers === 'any' ? 'any' : [...taxpayers]).toEqual(expected);
  });

  const map = '{"Reader":"taxpayers:read","Tax Clerk":["taxpayers:read","refresh-jobs:read"],"taxpayers:any":[]}';
  it.each<[string, string, Record<string, unknown>, string[]]>([
    ['roles', 'roles', { roles: ['taxpayers:read'], scope: 'taxpayers:any' }, ['taxpayers:read']],
    ['permissions', 'permissions', { permissions: ['refresh-jobs:read'] }, ['refresh-jobs:read']],
    ['the first that is there', 'scp,roles', { roles: ['taxpayers:read'] }, ['taxpayers:read']],
    ['the first of two', 'scp,roles', { scp: 'taxpayers:read', roles: ['taxpayers:any'] }, ['taxpayers:read']],
    ['a nested claim', 'realm_access.roles', { realm_access: { roles: ['taxpayers:read'] } }, ['taxpayers:read']],
    ['a deeper one', 'a.b.c', { a: { b: { c: 'taxpayers:read' } } }, ['taxpayers:read']],
    [
      'a name with dots',
      'https://a.example/roles',
      { 'https://a.example/roles': ['taxpayers:read'] },
      ['taxpayers:read'],
    ],
    ['a path through one', 'r.my.app.roles', { r: { 'my.app': { roles: ['taxpayers:read'] } } }, ['taxpayers:read']],
    ['a path through a text', 'a.b', { a: 'taxpayers:read' }, []],
    ['a path to an object', 'a', { a: { roles: ['taxpayers:any'] } }, []],
    ['a path through a prototype', 'a.constructor.name', { a: {} }, []],
    ['a path through a null', 'a.b,scope', { a: null, scope: 'taxpayers:read' }, ['taxpayers:read']],
    ['a path to a null', 'a,scope', { a: null, scope: 'taxpayers:any' }, []],
    ['what a value stands for', 'roles', { roles: ['Reader', 'unknown'] }, ['taxpayers:read']],
    [
      'what one stands for that has a space',
      'roles',
      { roles: ['Tax Clerk'] },
      ['refresh-jobs:read', 'taxpayers:read'],
    ],
    ['values that the map does not name', 'roles', { roles: ['client-links:create'] }, ['client-links:create']],
    ['one that stands for nothing', 'roles', { roles: ['taxpayers:any'] }, []],
    ['names of a prototype', 'roles', { roles: ['__proto__', 'constructor', 'toString'] }, []],
  ])('reads %s as AUTH_SCOPES_CLAIM and AUTH_SCOPES_MAP say', async (_, AUTH_SCOPES_CLAIM, claims, expected) => {
    const env = { AUTH_SCOPES_CLAIM, AUTH_SCOPES_MAP: map };
    const caller = await jwtAuthenticator([provider], { env }).authenticate(bearer(await provider.token(claims)));
    expect([...caller.scopes].sort()).toEqual(expected);
  });

  it('reads the taxpayers by a path as well', async () => {
    const named = jwtAuthenticator([provider], { env: { AUTH_TAXPAYERS_CLAIM: 'firm.clients' } });
    const token = await provider.token({ firm: { clients: ['t1', 't2'] }, taxpayer_ids: ['t3'] });
    expect((await named.authenticate(bearer(token))).taxpayers).toEqual(new Set(['t1', 't2']));
  });

  it.each(['__proto__', 'constructor', 'toString'])('reads nothing from the prototype for a claim %s', async (name) => {
    const named = jwtAuthenticator([provider], { env: { AUTH_TAXPAYERS_CLAIM: name } });
    expect((await named.authenticate(bearer(await provider.token()))).taxpayers).toEqual(new Set());
    const own = await provider.token({ [name]: ['t1'] });
    expect((await named.authenticate(bearer(own))).taxpayers).toEqual(new Set(['t1']));
  });

  it('counts calls under the name of who can be told apart, and of nobody else', async () => {
    const caller = await authenticate(bearer(await provider.token()));
    expect(holderOf(caller)).toBe(caller.key);
    expect(holderOf(router)).toBe(router.key);
    expect([anyone, localDeveloper].map(holderOf)).toEqual([undefined, undefined]);
  });
});
