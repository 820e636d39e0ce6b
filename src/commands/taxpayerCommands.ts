import { callerKey } from '../auth/caller.js';
import { Sealer } from '../cache/Sealer.js';
import { loadConfig } from '../config/config.js';
import { identifiers } from '../datasources/identifiers.js';
import { refusalName } from '../datasources/tokenAnswer.js';
import { shownStore } from '../stores/openStore.js';
import { goOnAlone } from '../stores/StoreError.js';
import { type Command, UsageError } from './Command.js';
import { withSealedStore } from './withStore.js';

/** Kinds, ages and cool-downs of what is stored about a taxpayer; never a token, a name or a status. Times are in seconds. */
export const inspect: Command = {
  takesArgument: true,
  async run(argument) {
    const id = identifiers.taxpayerId(argument);
    const config = loadConfig();
    return withSealedStore(config, 'read', async (sealed, sealer) => {
      const taxpayer = sealer.digest('taxpayer', id);
      const stored = await sealed.fields(id);
      const fields = stored.toSorted((one, other) => other.name.localeCompare(one.name)); // the token first
      const entries = fields.map(({ name, ageMs, leftMs }) => ({
        what: name === 'token' ? 'token record' : 'job status',
        ageSeconds: seconds(ageMs),
        keptForSeconds: seconds(leftMs),
      }));
      const coolDown = await sealed.coolDown(refusalName(id));
      const coolDownSeconds = coolDown && seconds(coolDown.leftMs);
      const lines = entries.map(
        ({ what, ageSeconds, keptForSeconds }) => `  ${what}, ${ageSeconds} s old, kept for ${keptForSeconds} s`,
      );
      if (coolDown) lines.push(`  cool-down after a refusal, for ${coolDownSeconds} s`);
      const store = shownStore(config.CACHE_URL);
      const about = `taxpayer ${taxpayer} in ${store}`;
      return {
        data: { taxpayer, store, entries, coolDownSeconds },
        lines: lines.length > 0 ? [about, ...lines] : [`${about}: nothing is stored`],
      };
    });
  },
};

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

/** Erases what is stored about a taxpayer, in the whole fleet, whose processes write the audit lines. */
export const forget: Command = {
  takesArgument: true,
  async run(argument) {
    const config = loadConfig();
    const subject = identifiers.taxpayerId(argument);
    return withSealedStore(config, 'write', async (sealed, sealer) => {
      const requestId = crypto.randomUUID();
      const erased = await sealed.forget({ id: requestId, subject }); // works in a full Redis, too
      await sealed.put(refusalName(subject), '', 1).catch(goOnAlone); // a cool-down also ends by itself
      const taxpayer = sealer.digest('taxpayer', subject);
      const entries = erased === 1 ? 'entry' : 'entries';
      return {
        data: { taxpayer, erased, requestId },
        lines: [`taxpayer ${taxpayer}: ${erased} ${entries} erased (request ${requestId})`],
      };
    });
  },
};

/** Prints the hash of a taxpayer, or of a caller by issuer and subject; during a key rotation those by earlier keys follow. */
export const pseudonym: Command = {
  takesArgument: true,
  options: ['issuer'],
  async run(argument, { issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const config = loadConfig();
    const sealer = new Sealer(config.UPSTREAM_CLIENT_SECRET, config.CACHE_ENCRYPTION_KEY);
    const hashes =
      issuer === undefined
        ? sealer.digests('taxpayer', identifiers.taxpayerId(argument))
        : sealer.digests('caller', callerKey(issuer, argument));
    return { data: { pseudonym: hashes[0], previous: hashes.slice(1) }, lines: hashes };
  },
};
