/** A key of another type counts as absent, and so does a lease or counter without an expiry, which would last for ever. */
const present = `
  local function present(key)
    if redis.call('type', key).ok == 'string' then return redis.call('get', key) end
  end
  local function expiring(key)
    if redis.call('pttl', key) ~= -1 then return present(key) end
  end`;

/** The atomic operations, on one key or several of one cluster slot. */
export const redisScripts = {
  gatewayClaim: {
    numberOfKeys: 1,
    lua: `${present}
      if expiring(KEYS[1]) then return 0 end
      redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
      return 1`,
  },
  gatewayAcquire: {
    numberOfKeys: 2,
    lua: `${present}
      local entry = present(KEYS[1])
      if entry and entry ~= ARGV[3] then return { 'found', entry } end
      local holder = expiring(KEYS[2])
      if holder then return { 'held', holder } end
      redis.call('set', KEYS[2], ARGV[1], 'px', ARGV[2])
      return { 'taken' }`,
  },
  gatewayRenew: {
    numberOfKeys: 1,
    lua: `${present}
      if expiring(KEYS[1]) ~= ARGV[1] then return 0 end
      return redis.call('pexpire', KEYS[1], ARGV[2])`,
  },
  /** If the first key holds the expected value, writes the second key, when given, and then deletes the first. */
  gatewayDelete: {
    lua: `${present}
      if present(KEYS[1]) ~= ARGV[1] then return 0 end
      if KEYS[2] then redis.call('set', KEYS[2], ARGV[2], 'px', ARGV[3]) end
      redis.call('del', KEYS[1])
      return 1`,
  },
  gatewayIncrement: {
    numberOfKeys: 1,
    lua: `${present}
      local held = expiring(KEYS[1])
      if held and #held <= 15 and string.match(held, '^%d+$') then return redis.call('incrby', KEYS[1], ARGV[1]) end
      redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
      return tonumber(ARGV[1])`,
  },
} as const;

/** The commands the scripts become on a client. */
export interface ScriptedCommands {
  gatewayClaim(key: string, value: Buffer, ttlMs: number): Promise<number>;
  gatewayAcquireBuffer(
    key: string,
    leaseKey: string,
    owner: Buffer,
    ttlMs: number,
    refused?: Buffer,
  ): Promise<Buffer[]>;
  gatewayRenew(leaseKey: string, owner: Buffer, ttlMs: number): Promise<number>;
  gatewayDelete(numberOfKeys: 1 | 2, ...keysAndArguments: (string | Buffer | number)[]): Promise<number>;
  gatewayIncrement(key: string, by: number, ttlMs: number): Promise<number>;
}
