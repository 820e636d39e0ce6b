import { callerKey } from '../auth/caller.js';
import type { SealedStore } from '../cache/SealedStore.js';
import { entryOf } from '../cache/StoredEntries.js';
import { Sealer } from '../cache/sealing.js';
import { type Config, embeddedSandbox, loadConfig } from '../config/config.js';
import { freshMsOf } from '../datasources/freshness.js';
import { identifiers } from '../datasources/identifiers.js';
import { isTerminal, sharedMs, storedObservation } from '../datasources/RefreshJobs.js';
import { absenceMs, refusalName, tokenAnswerCodec } from '../datasources/tokenAnswer.js';
import { auditLine } from '../observability/auditLine.js';
import { LineLimit } from '../observability/LineLimit.js';
import { createLogger } from '../observability/log.js';
import { type Command, UsageError } from './Command.js';
import { withStoreOf } from './withStore.js';

/** Kinds, ages, freshness and cool-downs of what is stored about a taxpayer; never a token, a name or a status. */
export const inspect: Command = {
  takesTaxpayer: true,
  async run(argument) {
    const config = loadConfig();
    const id = identifiers.taxpayerId(argument);
    return withStoreOf(config, 'read', async ({ sealer, sealed }) => {
      const taxpayer = sealer.digest('taxpayer', id);
      const fields = [...(await sealed.fields(id))].sort((one, other) => other.name.localeCompare(one.name)); // the token first
      const entries = fields.map((field) => describe(field, config));
      const coolDown = await sealed.mark(refusalName(id));
      if (coolDown) entries.push({ what: 'cool-down after a refusal', keptForSeconds: seconds(coolDown.leftMs) });
      const about = `taxpayer ${taxpayer} in ${sealed.kind}`;
      return {
        ok: true,
        data: { taxpayer, store: sealed.kind, entries },
        lines: entries.length > 0 ? [about, ...entries.map(textOf)] : [`${about}: nothing is stored`],
      };
    });
  },
};

type Field = Awaited<ReturnType<SealedStore['fields']>>[number];

/** An entry of the store. Times are in whole seconds. */
interface Entry {
  readonly what: string;
  readonly ageSeconds?: number;
  readonly freshForSeconds?: number | undefined;
  readonly keptForSeconds: number;
}

function describe(field: Field, { tokens }: Config): Entry {
  const [what, freshMs] = field.name === 'token' ? tokenIn(field, tokens.freshness) : jobIn(field);
  return {
    what,
    ageSeconds: seconds(field.ageMs),
    freshForSeconds: freshMs && seconds(freshMs - field.ageMs),
    keptForSeconds: seconds(field.leftMs),
  };
}

/** What an entry holds, and for how long after its read it is fresh, in milliseconds. */
type Content = readonly [what: string, freshMs?: number];

function tokenIn(field: Field, freshness: Config['tokens']['freshness']): Content {
  const value = entryOf(field, tokenAnswerCodec)?.value;
  if (value === undefined) return ['unreadable token record'];
  return value.kind === 'record' ? ['token record', freshMsOf(freshness, value)] : ['absence', absenceMs];
}

function jobIn({ value }: Field): Content {
  const job = storedObservation.safeParse(value).data?.job;
  if (job === undefined) return ['unreadable job status'];
  return isTerminal(job) ? ['final job status'] : ['job status', sharedMs];
}

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

/** As `token record, ageSeconds 340, keptForSeconds 2591660`. */
function textOf({ what, ...times }: Entry): string {
  const told = Object.entries(times).filter(([, value]) => value !== undefined);
  return `  ${[what, ...told.map(([name, value]) => `${name} ${value}`)].join(', ')}`;
}

/** Erases what is stored about a taxpayer, in the whole fleet, with an audit line on standard error. */
export const forget: Command = {
  takesTaxpayer: true,
  async run(argument) {
    const config = loadConfig();
    const subject = identifiers.taxpayerId(argument);
    return withStoreOf(config, 'write', async ({ sealer, sealed }) => {
      const request = crypto.randomUUID();
      await sealed.put(refusalName(subject), '', 1); // ends a cool-down
      const erased = await sealed.forget({ id: request, subject });
      const log = createLogger('info', { write: (line) => void process.stderr.write(line) });
      const forgotten = { action: 'taxpayer-forgotten', outcome: `erased ${erased}` } as const;
      new LineLimit(log, sealer).pass(auditLine({ ...forgotten, requestId: request, taxpayer: subject }));
      const taxpayer = sealer.digest('taxpayer', subject);
      return {
        ok: true,
        data: { taxpayer, erased, request },
        lines: [`taxpayer ${taxpayer}: ${erased} entries erased (request ${request})`],
      };
    });
  },
};

/** Prints the hash of a taxpayer, or of a caller by issuer and subject; during a key rotation those by earlier keys follow. */
export const pseudonym: Command = {
  takesTaxpayer: true,
  options: { issuer: { type: 'string' } },
  async run(argument, { issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const { cache, upstream } = loadConfig();
    const { clientSecret } = upstream === 'embedded-sandbox' ? embeddedSandbox : upstream;
    const sealer = new Sealer(clientSecret, cache.encryptionKeys);
    const hashes =
      issuer === undefined
        ? sealer.digests('taxpayer', identifiers.taxpayerId(argument))
        : sealer.digests('caller', callerKey(issuer, argument));
    return { ok: true, data: { pseudonym: hashes[0], previous: hashes.slice(1) }, lines: hashes };
  },
};
