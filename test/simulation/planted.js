// Defects that the auditor has to find: small patches of the real classes. `find` occurs once in src/`file`.

const leased = 'cache/LeasedCache.ts';
const leases = 'cache/keepLease.ts';
const broker = 'datasources/TokenBroker.ts';
const links = 'datasources/ClientLinks.ts';
const watcher = 'datasources/Watcher.ts';
const budget = 'upstream/TokenBudget.ts';
const gate = 'upstream/CallGate.ts';
const fallback = 'stores/FallbackStore.ts';

const defect = (name, file, find, replace) => ({ name, file, find, replace });

export const planted = [
  defect(
    'the lease is released before the value is written',
    leased,
    'if (!lease.isLost && (await settle())) return fetched;',
    'await store.release(name, owner); await store.set(name, encodeEntry(fetched, codec), ttlMs(fetched.value)); return fetched;',
  ),
  defect('a lease is never renewed', leases, 'const renewEveryMs = 1000;', 'const renewEveryMs = 1_000_000;'),
  defect('a lease lasts 30 ms instead of 3 s', leases, 'export const leaseMs = 3000;', 'export const leaseMs = 30;'),
  defect(
    'whoever waits ends the lease of the holder',
    leased,
    "if (turn.state === 'held') {",
    "if (turn.state === 'held') {\n        await store.release(name, turn.owner);",
  ),
  defect(
    'a value that was fetched is not written',
    leased,
    'if (!lease.isLost && (await settle())) return fetched;',
    'if (await store.renew(name, owner, 1)) return fetched;',
  ),
  defect(
    'memory keeps nothing of what was fetched',
    leased,
    'this.#keep(reader, entry); // also over one',
    '// also over one',
  ),
  defect('a flight is not joined', leased, 'if (underway === undefined) {', 'if (underway === undefined || true) {'),
  defect(
    'any entry of the store will do',
    leased,
    'if (entry && this.#willDo(entry, reader)) return this.#remember',
    'if (entry) return this.#remember',
  ),
  defect(
    'any entry of memory will do',
    leased,
    'if (entry === undefined || !acceptable(entry)) return undefined;',
    'if (entry === undefined) return undefined;',
  ),
  defect(
    'what the store had all along replaces what was fetched',
    leased,
    '?? Infinity) + this.#skewMs < beganAt',
    '?? Infinity) + this.#skewMs < Math.min(beganAt, 0)',
  ),
  defect(
    'forgetting leaves what is in memory',
    leased,
    'for (const id of [...this.#memory.keys()].filter(isMeant)) this.#memory.delete(id);',
    '',
  ),
  defect('forgetting leaves what is being read', leased, 'reader.isForgotten = true;', ''),
  defect(
    'the time limit of a fetch is not cleared',
    leased,
    '    } finally {\n      clearTimeout(timer);\n    }',
    '    } finally {\n    }',
  ),
  defect(
    'each version of an entry is the same',
    leased,
    'const version = crypto.randomUUID();',
    "const version = 'same';",
  ),
  defect(
    'an entry is written for the age of a stale one',
    broker,
    "(answer.kind === 'record' ? options.keepMs : absenceMs)",
    "(answer.kind === 'record' ? options.keepMs / 500_000 : absenceMs)",
  ),
  defect(
    'a 401 replaces whatever token is there',
    broker,
    'entry.version !== refused && ',
    'refused === undefined && ',
  ),
  defect('a refused token is used again', broker, 'entry.version !== refused && ', ''),
  defect(
    'a refusal of an old token counts as one of a new token',
    broker,
    'if ((before && isSuccessor(credential, before, beganAt)) || refused === mostRefused) {',
    'if (before) {',
  ),
  defect(
    'a record is fresh for three times as long',
    broker,
    'return this.#cache.isYoungerThan(entry, Math.min(freshMs,',
    'return this.#cache.isYoungerThan(entry, Math.min(3 * freshMs,',
  ),
  defect(
    'a record is fresh for half as long',
    broker,
    'return this.#cache.isYoungerThan(entry, Math.min(freshMs,',
    'return this.#cache.isYoungerThan(entry, Math.min(freshMs / 2,',
  ),
  defect(
    'a record is as young as the youngest that was asked for',
    broker,
    'Math.max(maxAgeMs, freshnessFloorMs)',
    'Math.min(maxAgeMs, freshnessFloorMs / 50)',
  ),
  defect(
    'repeated tries do not count in the budget',
    broker,
    'await this.#budget.spend(call); // for each try',
    'await (beforeTry.isSpent ??= this.#budget.spend(call)); // for each try',
  ),
  defect(
    'a job status is shared for ten seconds',
    'datasources/RefreshJobs.ts',
    'export const sharedMs = 1000;',
    'export const sharedMs = 10_000;',
  ),
  defect(
    'a job that is processing counts as ended',
    'datasources/RefreshJobs.ts',
    "job.status === 'failed'",
    "job.status === 'processing'",
  ),
  defect(
    'the budget is off by one',
    budget,
    'count === undefined || count - reserved > perHour) return false;',
    'count === undefined || count - reserved > perHour + 1) return false;',
  ),
  defect(
    'a store that lost the count is believed',
    budget,
    'if (count !== undefined && count < least)',
    'if (count !== undefined && count < 0)',
  ),
  defect(
    'a reserve is not counted',
    budget,
    'await this.#count(hour, untold + 1 + reserved);',
    'await this.#count(hour, untold + 1);',
  ),
  defect(
    'without the store the budget has no end',
    budget,
    'if (hour.seen > 0 || hour.made >= Math.ceil(this.options.perHour * aloneShare)) return false;',
    '',
  ),
  defect(
    'a pause asked for by the service is not looked at',
    gate,
    'if (block && block.until > Date.now()) throw',
    'if (block && block.until < Date.now()) throw',
  ),
  defect(
    'a pause lasts a tenth of its time',
    gate,
    "'rate-limited', seconds * 1000)",
    "'rate-limited', seconds * 100)",
  ),
  defect(
    'refused credentials rest for 3 s',
    gate,
    'const credentialsCoolDownMs = 30_000;',
    'const credentialsCoolDownMs = 3_000;',
  ),
  defect(
    'refused credentials close one endpoint of two',
    gate,
    "status === 401 ? ['taxpayerToken', 'createClientLink'] : [endpoint]",
    '[endpoint]',
  ),
  defect(
    'Retry-After is not read',
    'upstream/readAnswer.ts',
    'return { status, retryAfterSeconds: seconds, json: undefined };',
    'return { status, retryAfterSeconds: undefined, json: undefined };',
  ),
  defect(
    'a POST that may have arrived counts as failed',
    'upstream/ResilientFetch.ts',
    'throw connection.established && !isCertain ? outcomeUnknown(failure) : failure;',
    'throw failure;',
  ),
  defect(
    'an open breaker stays open',
    'upstream/EndpointBreaker.ts',
    'this.openUntil = now + resetMs;',
    'this.openUntil = Infinity;',
  ),
  defect('an unknown outcome frees the key', links, "error.code !== 'OUTCOME_UNKNOWN'", "error.code !== 'NOT_FOUND'"),
  defect(
    'the result of a creation is not written down',
    links,
    "await this.#write(attempt, { state: 'created', input, link });",
    '',
  ),
  defect(
    'another input under the same key is not noticed',
    links,
    'record.input !== attempt.input',
    'record.input === undefined',
  ),
  defect('a process does not look at its own records', links, 'if (this.#own.has(text)) return undefined;', ''),
  defect(
    'a key is remembered for a second',
    links,
    'const idempotencyTtlMs = 24 * 3_600_000;',
    'const idempotencyTtlMs = 1000;',
  ),
  defect('a claim whose answer was lost is kept', fallback, 'if (asked) this.#journal.addDeletion(key, value);', ''),
  defect(
    'a claim without an answer counts as granted',
    fallback,
    "    throw new StoreError('unreachable');\n  }\n\n  /** In one operation",
    '    return true;\n  }\n\n  /** In one operation',
  ),
  defect('a store that answers again is not used', fallback, 'this.#degradedSince = undefined;', ''),
  defect(
    'the journal delivers over newer values',
    'stores/WriteJournal.ts',
    "if (kind !== 'set' && !isSettled) await primary.claim(key, value, ttlMs);",
    'if (!isSettled) await primary.set(key, value, ttlMs);',
  ),
  defect(
    'a poll is made twice as often',
    'datasources/jobWatcher.ts',
    'const jitter = 0.9 + 0.2 *',
    'const jitter = 0.4 + 0.2 *',
  ),
  defect('polls go on without a watcher', watcher, 'if (this.#readers.size === 0) this.end();', ''),
  defect(
    'a watch goes on after the end of the job',
    watcher,
    'if (this.#watched.isFinal(view)) this.end();\n    else ',
    '',
  ),
  defect(
    'a watcher gives up after one failure',
    watcher,
    'this.#schedule(this.#watched.retryInMs(this.#failures, askedMs));',
    '',
  ),
  defect('the longest time of a watch is not cleared', watcher, '      clearTimeout(timer);\n', ''),
  defect(
    'what was erased is forgotten when the erasing begins, and not when it is done',
    'cache/Forgets.ts',
    'if (isNew) this.#forget(each.subject);',
    "if (isNew && each.state === 'begun') this.#forget(each.subject);",
  ),
  defect(
    'erasing leaves the lease',
    'cache/SubjectEntries.ts',
    'if (await this.#delete(leaseKeyOf(key))) erased += 1;',
    '',
  ),
  defect(
    'a release does not compare',
    'cache/OneKeyStore.ts',
    'return this.options.store.compareAndDelete(leaseKeyOf(this.keyOf(name)), Buffer.from(owner as string));',
    'const key = leaseKeyOf(this.keyOf(name));\n    void owner;\n    return this.options.store.get(key).then((held) => (held ? this.options.store.compareAndDelete(key, held) : false));',
  ),
  defect(
    'what has not expired counts as expired',
    'cache/OneKeyStore.ts',
    'if (found.expiresAt > Date.now())',
    'if (found.expiresAt < Date.now())',
  ),
];
