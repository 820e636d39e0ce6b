/**
 * The atomic operations, on one key, or on two of one slot, so that they run on a cluster. A key of a foreign type, or one without an expiry
 * (all of ours have one), was not written by us and counts as absent: garbage must not hold a lease for ever.
 */
export const redisScripts = {
  gatewaySetIfAbsent: {
    numberOfKeys: 1,
    lua: `
      if redis.call('type', KEYS[1]).ok == 'string' and redis.call('pttl', KEYS[1]) ~= -1 then return 0 end
      redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
      return 1`,
  },
  gatewaySetIfHolding: {
    numberOfKeys: 2,
    lua: `
      if redis.call('type', KEYS[2]).ok ~= 'string' or redis.call('get', KEYS[2]) ~= ARGV[3] then return 0 end
      redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
      return 1`,
  },
  // Publishing may be forbidden to our user; the waiters then find out by looking.
  gatewayCompareAndDelete: {
    numberOfKeys: 1,
    lua: `
      if redis.call('type', KEYS[1]).ok ~= 'string' or redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
      redis.call('del', KEYS[1])
      redis.pcall('publish', ARGV[2], KEYS[1])
      return 1`,
  },
  gatewayIncrement: {
    numberOfKeys: 1,
    lua: `
      local held
      if redis.call('type', KEYS[1]).ok == 'string' and redis.call('pttl', KEYS[1]) ~= -1 then
        held = redis.call('get', KEYS[1])
      end
      if held and #held <= 15 and string.match(held, '^%d+$') then
        return { redis.call('incrby', KEYS[1], ARGV[1]), redis.call('pttl', KEYS[1]) }
      end
      redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
      return { tonumber(ARGV[1]), tonumber(ARGV[2]) }`,
  },
} as const;

/** The commands the scripts become on a client. */
export interface ScriptedCommands {
  gatewaySetIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<number>;
  gatewaySetIfHolding(key: string, leaseKey: string, value: Buffer, ttlMs: number, owner: Buffer): Promise<number>;
  gatewayCompareAndDelete(key: string, expected: Buffer, channel: string): Promise<number>;
  gatewayIncrement(key: string, by: number, ttlMs: number): Promise<[count: number, resetsInMs: number]>;
}
