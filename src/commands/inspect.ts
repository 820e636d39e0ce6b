import { decodeEntry } from '../cache/StoredEntries.js';
import type { SubjectEntries, SubjectEntry } from '../cache/SubjectEntries.js';
import type { Sealer } from '../cache/sealing.js';
import { type Config, loadConfig } from '../config/config.js';
import { freshMsOf } from '../datasources/freshness.js';
import { identifierReader, type TaxpayerId } from '../datasources/identifiers.js';
import { isTerminal, sharedMs, storedObservation } from '../datasources/RefreshJobs.js';
import { absenceMs, tokenAnswerCodec, tokenNames } from '../datasources/tokenAnswer.js';
import { baseKeyOf } from '../stores/Store.js';
import { type Command, taxpayerArgument } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

/** Times are in whole seconds; `job` and `version` are keyed hashes. */
interface Item {
  readonly kind: 'token' | 'job' | 'cool-down';
  /** What the entry holds. */
  readonly what: 'record' | 'absence' | 'status' | 'final status' | 'refusal' | 'lease' | 'failure' | 'unreadable';
  readonly job?: string;
  readonly version?: string;
  readonly ageSeconds?: number;
  readonly freshForSeconds?: number;
  readonly keptForSeconds?: number;
}

export const inspect: Command = {
  does: 'shows what is stored about a taxpayer',
  details: 'Kinds, ages, freshness, leases and cool-downs; never a token, a name or a status.',
  argument: taxpayerArgument,
  async run(argument) {
    const config = loadConfig();
    const id = identifierReader(config.limits.idLength).taxpayerId(argument);
    return withStoreOf(config, async ({ store, sealer, entries }) => {
      const taxpayer = sealer.digest('taxpayer', id);
      const describe = describer(config, sealer, entries, id);
      const items = (await entries.list(id)).map(describe).sort((one, other) => orderOf(one) - orderOf(other));
      const about = `taxpayer ${taxpayer} in ${store.kind}`;
      return {
        ok: true,
        data: { taxpayer, store: store.kind, entries: items },
        lines: items.length > 0 ? [about, ...items.map(textOf)] : [`${about}: nothing is stored`],
      };
    });
  },
};

function describer({ tokens }: Config, sealer: Sealer, entries: SubjectEntries, id: TaxpayerId) {
  const now = Date.now();
  const hashOf = (purpose: string, text: string) => sealer.digest(purpose, text).slice(0, 12);
  const names = tokenNames(id);
  const answerKeys = entries.keysOf(names.answer);
  const refusalKeys = entries.keysOf(names.refusal);
  const age = (fetchedAt: number, freshMs: number) => ({
    ageSeconds: seconds(now - fetchedAt),
    // At most `freshMs`: the machine that read the entry may have a clock that is ahead.
    freshForSeconds: seconds(Math.min(freshMs, fetchedAt + freshMs - now)),
  });

  const tokenOf = (stored: unknown) => {
    const entry = decodeEntry(stored, tokenAnswerCodec);
    if (entry === undefined) return { what: 'unreadable' } as const;
    const { value, fetchedAt } = entry;
    const version = hashOf('version', entry.version);
    if (value.kind !== 'record') return { what: 'absence', version, ...age(fetchedAt, absenceMs) } as const;
    return {
      what: 'record',
      version,
      ...age(fetchedAt, freshMsOf(tokens.freshness, { ...value, fetchedAt })),
    } as const;
  };

  const jobOf = (stored: unknown) => {
    const entry = decodeEntry(stored, { encode: () => undefined, decode: (value) => storedObservation.parse(value) });
    if (entry === undefined) return { what: 'unreadable' } as const;
    const { job } = entry.value;
    const about = { job: hashOf('job', job.jobId), version: hashOf('version', entry.version) };
    if (!isTerminal(job)) return { what: 'status', ...about, ...age(entry.fetchedAt, sharedMs) } as const;
    return { what: 'final status', ...about, ageSeconds: seconds(now - entry.fetchedAt) } as const;
  };

  return ({ key, part, found }: SubjectEntry): Item => {
    const base = baseKeyOf(key);
    const kind = answerKeys.includes(base) ? 'token' : refusalKeys.includes(base) ? 'cool-down' : 'job';
    if (part === 'lease') return { kind, what: part };
    const kept = { keptForSeconds: seconds(found.expiresAt - now) };
    if (part === 'failure') return { kind, what: part, ...kept };
    if (kind === 'cool-down')
      return { kind, what: 'refusal', version: hashOf('version', String(found.value)), ...kept };
    return { kind, ...(kind === 'token' ? tokenOf(found.value) : jobOf(found.value)), ...kept };
  };
}

const orderOf = ({ kind }: Item): number => ['token', 'cool-down', 'job'].indexOf(kind);

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

function textOf({ kind, what, job, version, ageSeconds, freshForSeconds, keptForSeconds }: Item): string {
  const parts = [
    `${kind}: ${what}`,
    job && `of job ${job}`,
    version && `version ${version}`,
    ageSeconds !== undefined && `read ${ageSeconds} s ago`,
    freshForSeconds !== undefined && (freshForSeconds > 0 ? `fresh for ${freshForSeconds} s` : 'not fresh'),
    keptForSeconds !== undefined && `kept for ${keptForSeconds} s`,
  ];
  return `  ${parts.filter(Boolean).join(', ')}`;
}
