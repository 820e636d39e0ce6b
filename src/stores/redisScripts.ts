import { hourMs } from './Store.js';

/**
 * How long a record with nothing but a lease or a failure lives. With a job it lives for an hour, with a token for as long as
 * the token is kept.
 */
const leaseLifeMs = 10_000;
/** In a record with more fields than this, a new job replaces the other jobs and their leases. */
const mostFields = 100;

/**
 * A record is a hash. Its fields: `F` holds "written expires version\n" and the value, `F:lease` "owner until\n" and, once the
 * owner has failed, its failure, `forgotten` a time. Times are the server's, in milliseconds: whole numbers of 13 digits, of
 * which Lua writes all.
 */
const common = `
  local time = redis.call('time')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local key = KEYS[1]
  local function entry(name)
    local found = redis.call('hget', key, name) or ''
    local written, expires, version, value = string.match(found, '^(%d+) (%d+) (%S+)\\n(.*)$')
    if written and tonumber(expires) > now then return version, now - written, value, expires - now end
  end
  local function lease(name)
    return string.match(redis.call('hget', key, name .. ':lease') or '', '^(%S+) (%d+)\\n(.*)$')
  end
  local function live(ms)
    local left = redis.call('pttl', key)
    if left < ms then redis.call('pexpire', key, ms) end
  end`;

/** The atomic operations, each on one key. One on a key of another type fails and changes nothing. */
export const redisScripts = {
  gatewayAcquire: `${common}
    local name, owner, length, refused, awaited = unpack(ARGV)
    local version, age, value = entry(name)
    if version and version ~= refused then return { 'found', version, age, value } end
    local holder, till, failure = lease(name)
    if holder == awaited and failure ~= '' then return { 'failed', failure } end
    -- A lease with more left than its full length counts as over: the clock was set back.
    local left = till and till - now or 0
    if holder ~= owner and left > 0 and left <= tonumber(length) then return { 'held', holder } end
    redis.call('hset', key, name .. ':lease', owner .. ' ' .. (now + length) .. '\\n')
    live(${leaseLifeMs})
    return { 'taken', now }`,
  /** Whoever took the lease last may write, even when it has expired, while the key lives: nobody can have written since. */
  gatewaySettle: `${common}
    local name, owner, value, version, ttl, age, begun = unpack(ARGV) -- a failure has no version
    if lease(name) ~= owner then return 0 end
    local forgotten = tonumber(redis.call('hget', key, 'forgotten') or '')
    local isForgotten = version and forgotten and forgotten - now <= ${hourMs} and tonumber(begun) <= forgotten
    if version and not isForgotten then
      local head = (now - age) .. ' ' .. (now + ttl) .. ' ' .. version .. '\\n'
      redis.call('hset', key, name, head .. value)
      live(name == 'token' and math.max(tonumber(ttl), ${hourMs}) or ${hourMs})
    end
    if not version and value ~= '' then redis.call('hset', key, name .. ':lease', owner .. ' 0\\n' .. value)
    else redis.call('hdel', key, name .. ':lease') end
    if redis.call('hlen', key) <= ${mostFields} then return 1 end
    for _, each in ipairs(redis.call('hkeys', key)) do
      if each ~= name and string.match(each, '^job') then redis.call('hdel', key, each) end
    end
    return 1`,
  gatewayForget: `${common}
    local erased = redis.call('hlen', key) - redis.call('hexists', key, 'forgotten')
    redis.call('unlink', key)
    redis.call('hset', key, 'forgotten', now)
    redis.call('pexpire', key, ${hourMs})
    return erased`,
  gatewayNote: `${common}
    redis.call('zremrangebyscore', key, '-inf', now - ${hourMs})
    redis.call('zadd', key, now, ARGV[1])
    redis.call('pexpire', key, ${hourMs})`,
  /** Notes from a minute before the mark on: a failover may set the clock back. */
  gatewayNotes: `${common}
    return { now, redis.call('zrangebyscore', key, ARGV[1] - 60000, '+inf') }`,
  gatewayFields: `${common}
    local found = {}
    for _, name in ipairs(redis.call('hkeys', key)) do
      local version, age, _, left = entry(name)
      if version then table.insert(found, { name, age, left }) end
    end
    return found`,
  /** An item without an end would last for ever, so it counts as absent. */
  gatewayGet: `
    local left = redis.call('pttl', KEYS[1])
    if left < 0 then return { 0 } end
    return { left, redis.call('get', KEYS[1]) }`,
  gatewayPut: `
    local left = redis.call('pttl', KEYS[1])
    if ARGV[3] == 'if-absent' and left >= 0 then return 0 end
    if ARGV[3] == 'if-longer' and left >= tonumber(ARGV[2]) and left <= ${hourMs} then return 0 end
    redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
    return 1`,
  gatewayDeleteIf: `
    if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
    return redis.call('del', KEYS[1])`,
  gatewayIncrement: `
    local left = redis.call('pttl', KEYS[1])
    -- A counter with more left than its full length counts as over: the clock was set back.
    local held = left >= 0 and left <= tonumber(ARGV[1]) and redis.call('get', KEYS[1])
    if held and #held <= 15 and string.match(held, '^[1-9]%d*$') then
      return { redis.call('incr', KEYS[1]), left }
    end
    redis.call('set', KEYS[1], 1, 'px', ARGV[1])
    return { 1, tonumber(ARGV[1]) }`,
} as const;

export type Argument = string | Buffer | number;
type Script = (key: string, ...args: readonly Argument[]) => Promise<never>;

/** The commands the scripts become on a client; those that end in `Buffer` answer with bytes. */
export type ScriptedCommands = {
  readonly [Name in keyof typeof redisScripts as Name | `${Name}Buffer`]: Script;
};
