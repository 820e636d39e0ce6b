import type { SealedStore } from '../cache/SealedStore.js';
import { entryOf } from '../cache/StoredEntries.js';
import type { Sealer } from '../cache/sealing.js';
import { type Config, loadConfig } from '../config/config.js';
import { freshMsOf } from '../datasources/freshness.js';
import { identifierReader } from '../datasources/identifiers.js';
import { isTerminal, sharedMs, storedObservation } from '../datasources/RefreshJobs.js';
import { absenceMs, refusalName, tokenAnswerCodec } from '../datasources/tokenAnswer.js';
import type { Command } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

/** Times are in whole seconds; `job` and `version` are keyed hashes. */
type Item = Readonly<Record<string, string | number | undefined>>;

export const inspect: Command = {
  does: 'shows what is stored about a taxpayer',
  details: 'Kinds, ages, freshness and cool-downs; never a token, a name or a status.',
  takesTaxpayer: true,
  async run(argument) {
    const config = loadConfig();
    const id = identifierReader(config.limits.idLength).taxpayerId(argument);
    return withStoreOf(config, 'read', async ({ sealer, sealed }) => {
      const taxpayer = sealer.digest('taxpayer', id);
      const coolDown = await sealed.mark(refusalName(id));
      const items: Item[] = (await sealed.fields(id)).map((field) => describe(field, config, sealer));
      if (coolDown) {
        const version = shortHash(sealer, 'version', String(coolDown.value));
        items.push({ kind: 'cool-down', what: 'refusal', version, keptForSeconds: seconds(coolDown.leftMs) });
      }
      items.sort((one, other) => String(other['kind']).localeCompare(String(one['kind']))); // the token first
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

/** What an entry holds, for how long after its read it is fresh in milliseconds, and the job that it is about. */
interface Content {
  readonly what: 'record' | 'absence' | 'status' | 'final status' | 'unreadable';
  readonly freshMs?: number;
  readonly job?: string;
}

function describe(field: Field, { tokens }: Config, sealer: Sealer): Item {
  const { name, ageMs, leftMs } = field;
  const kind = name === 'token' ? 'token' : 'job';
  const { what, freshMs, job } = kind === 'token' ? tokenIn(field, tokens.freshness) : jobIn(field);
  return {
    kind,
    what,
    job: job && shortHash(sealer, 'job', job),
    version: shortHash(sealer, 'version', field.version),
    ageSeconds: seconds(ageMs),
    freshForSeconds: freshMs && (ageMs < 0 ? 0 : seconds(freshMs - ageMs)),
    keptForSeconds: seconds(leftMs),
  };
}

function tokenIn(field: Field, freshness: Config['tokens']['freshness']): Content {
  const value = entryOf(field, tokenAnswerCodec)?.value;
  if (value === undefined) return { what: 'unreadable' };
  if (value.kind !== 'record') return { what: 'absence', freshMs: absenceMs };
  return { what: 'record', freshMs: freshMsOf(freshness, value) };
}

function jobIn({ value }: Field): Content {
  const job = storedObservation.safeParse(value).data?.job;
  if (job === undefined) return { what: 'unreadable' };
  return isTerminal(job)
    ? { what: 'final status', job: job.jobId }
    : { what: 'status', job: job.jobId, freshMs: sharedMs };
}

const shortHash = (sealer: Sealer, kind: 'version' | 'job', text: string) => sealer.digest(kind, text).slice(0, 12);

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

/** The members of an item as words: `token: record, version mD3xQ0vKz7Ta, ageSeconds 340`. */
function textOf({ kind, what, ...more }: Item): string {
  const told = Object.entries(more).filter(([, value]) => value !== undefined);
  return [`  ${kind}: ${what}`, ...told.map(([name, value]) => `${name} ${value}`)].join(', ');
}
