import { openStore, shownStore } from '../../src/stores/openStore.js';
import { parseRedisUrl } from '../../src/stores/redisClient.js';

describe('A CACHE_URL', () => {
  it.each([
    ['redis://cache', { mode: 'single', tls: false, nodes: [{ host: 'cache', port: 6379 }], database: 0 }],
    ['rediss://u:p%40%2F@cache:6380/2', { tls: true, username: 'u', password: 'p@/', database: 2 }],
    ['redis://:p@[::1]:7000/', { nodes: [{ host: '::1', port: 7000 }], username: undefined, password: 'p' }],
    [
      'rediss+sentinel://u:p@a:1,b/main?db=3&sentinelUsername=s&sentinelPassword=t%40+',
      {
        mode: 'sentinel',
        tls: true,
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
        ],
        database: 3,
        sentinel: { name: 'main', sentinelUsername: 's', sentinelPassword: 't@+' },
      },
    ],
    ['redis+cluster://:p@a:1,b:2', { mode: 'cluster', nodes: [{ port: 1 }, { port: 2 }], password: 'p' }],
  ])('%s is understood', (url, address) => {
    expect(parseRedisUrl(url)).toMatchObject(address);
  });

  it.each([
    ['redis://user:planted@host:1/2?db=planted', 'redis://host:1/2, with a password'],
    ['redis+sentinel://a,b/main?sentinelPassword=plan@planted', 'redis+sentinel://a,b/main'],
  ])('%s is shown without its secrets', (url, shown) => {
    expect(shownStore(url)).toBe(shown);
  });

  it.each([
    'redis://:planted@a:1,b:2',
    'redis://:planted@a:99999',
    'redis://:planted@a/db',
    'redis://:planted%@a',
    'redis://:planted@a?x=planted',
    'redis+sentinel://:planted@a:1',
    'redis+sentinel://u:7/planted@a/main',
    'redis+cluster://:planted@a:1/3',
    'redis://:planted@',
    'http://:planted@a',
    'mongodb://planted',
    '',
  ])('%j is refused without repeating it', async (url) => {
    await expect(openStore(url, { waitMs: 0 })).rejects.toThrow(/^CACHE_URL (?!.*planted)/);
  });
});
