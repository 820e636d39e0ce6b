import type { SealedStore } from '../cache/SealedStore.js';
import { entryOf } from '../cache/StoredEntries.js';
import type { Sealer } from '../cache/sealing.js';
import { type Config, loadConfig } from '../config/config.js';
import { freshMsOf } from '../datasources/freshness.js';
import { identifierReader } from '../datasources/identifiers.js';
import { isTerminal, sharedMs, storedObservation } from '../datasources/RefreshJobs.js';
import { absenceMs, refusalName, tokenAnswerCodec } from '../datasources/tokenAnswer.js';
import { type Command, taxpayerArgument } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

/** Times are in whole seconds; `job` and `version` are keyed hashes. */
interface Item {
  readonly kind: 'token' | 'job' | 'cool-down';
  /** What the entry holds. */
  readonly what: 'record' | 'absence' | 'status' | 'final status' | 'refusal' | 'unreadable';
  readonly job?: string;
  readonly version?: string;
  readonly ageSeconds?: number;
  readonly freshForSeconds?: number;
  readonly keptForSeconds?: number;
}

export const inspect: Command = {
  does: 'shows what is stored about a taxpayer',
  details: 'Kinds, ages, freshness and cool-downs; never a token, a name or a status.',
  argument: taxpayerArgument,
  async run(argument) {
    const config = loadConfig();
    const id = identifierReader(config.limits.idLength).taxpayerId(argument);
    return withStoreOf(config, 'read', async ({ sealer, sealed }) => {
      const taxpayer = sealer.digest('taxpayer', id);
      const coolDown = await sealed.mark(refusalName(id));
      const items = (await sealed.fields(id)).map(describer(config, sealer));
      if (coolDown) {
        const version = versionOf(sealer, String(coolDown.value));
        items.push({ kind: 'cool-down', what: 'refusal', version, keptForSeconds: seconds(coolDown.leftMs) });
      }
      items.sort((one, other) => orderOf(one) - orderOf(other));
      const about = `taxpayer ${taxpayer} in ${sealed.kind}`;
      return {
        ok: true,
        data: { taxpayer, store: sealed.kind, entries: items },
        lines: items.length > 0 ? [about, ...items.map(textOf)] : [`${about}: nothing is stored`],
      };
    });
  },
};

type Field = Awaited<ReturnType<SealedStore['fields']>>[number];

function describer({ tokens }: Config, sealer: Sealer) {
  const aged = (ageMs: number, freshMs: number) => ({
    ageSeconds: seconds(ageMs),
    freshForSeconds: ageMs < 0 ? 0 : seconds(freshMs - ageMs),
  });

  const tokenOf = (field: Field) => {
    const value = entryOf(field, tokenAnswerCodec)?.value;
    if (value === undefined) return { what: 'unreadable' } as const;
    if (value.kind !== 'record') return { what: 'absence', ...aged(field.ageMs, absenceMs) } as const;
    return { what: 'record', ...aged(field.ageMs, freshMsOf(tokens.freshness, value)) } as const;
  };

  const jobOf = (field: Field) => {
    const { data } = storedObservation.safeParse(field.value);
    if (data === undefined) return { what: 'unreadable' } as const;
    const job = sealer.digest('job', data.job.jobId).slice(0, 12);
    if (!isTerminal(data.job)) return { what: 'status', job, ...aged(field.ageMs, sharedMs) } as const;
    return { what: 'final status', job, ageSeconds: seconds(field.ageMs) } as const;
  };

  return (field: Field): Item => {
    const kind = field.name === 'token' ? 'token' : 'job';
    const kept = { keptForSeconds: seconds(field.leftMs) };
    const version = versionOf(sealer, field.version);
    return { kind, version, ...(kind === 'token' ? tokenOf(field) : jobOf(field)), ...kept };
  };
}

const versionOf = (sealer: Sealer, version: string): string => sealer.digest('version', version).slice(0, 12);

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
