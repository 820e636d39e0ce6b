import { callerKey } from '../auth/caller.js';
import { SealedStore } from '../cache/SealedStore.js';
import { Sealer } from '../cache/Sealer.js';
import { loadConfig } from '../config/config.js';
import { identifiers, type TaxpayerId } from '../datasources/identifiers.js';
import { refusalName } from '../datasources/tokenAnswer.js';
import { ConfigError } from '../process/systemErrors.js';
import { shownStore } from '../stores/openStore.js';
import { goOnAlone } from '../stores/StoreError.js';
import { type Command, type Finding, UsageError } from './Command.js';
import { withStore } from './withStore.js';

/** Kinds, ages and cool-downs of what is stored about a taxpayer; never a token, a name or a status. Times are in seconds. */
export const inspect = aboutTaxpayer('read', async ({ id, taxpayer, sealed, store }) => {
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
  const about = `taxpayer ${taxpayer} in ${store}`;
  return {
    data: { taxpayer, store, entries, coolDownSeconds },
    lines: lines.length > 0 ? [about, ...lines] : [`${about}: nothing is stored`],
  };
});

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

/** Erases what is stored about a taxpayer, in the whole fleet, whose processes write the audit lines. */
export const forget = aboutTaxpayer('write', async ({ id: subject, taxpayer, sealed }) => {
  const requestId = crypto.randomUUID();
  const erased = await sealed.forget({ id: requestId, subject }); // works in a full Redis, too
  await sealed.put(refusalName(subject), '', 1).catch(goOnAlone); // a cool-down also ends by itself
  const entries = erased === 1 ? 'entry' : 'entries';
  return {
    data: { taxpayer, erased, requestId },
    lines: [`taxpayer ${taxpayer}: ${erased} ${entries} erased (request ${requestId})`],
  };
});

/** What a command about one taxpayer works with: `taxpayer` is the hash of the id, and `store` says which store it is. */
interface About {
  readonly id: TaxpayerId;
  readonly taxpayer: string;
  readonly sealed: SealedStore;
  readonly store: string;
}

/** A command that does `work` with the store that the gateways of this configuration use, and their keys. */
function aboutTaxpayer(use: 'read' | 'write', work: (about: About) => Promise<Finding>): Command {
  return {
    takesArgument: true,
    async run(argument) {
      const id = identifiers.taxpayerId(argument);
      const config = loadConfig();
      const { isSandbox, CACHE_URL: url } = config;
      if (isSandbox) {
        throw new ConfigError('UPSTREAM_BASE_URL is not set: the embedded sandbox keeps nothing after it stops');
      }
      const sealer = new Sealer(config);
      const taxpayer = sealer.digest('taxpayer', id);
      return withStore(url, use, (store) => {
        return work({ id, taxpayer, sealed: new SealedStore({ store, sealer, ...config }), store: shownStore(url) });
      });
    },
  };
}

/** Prints the hash of a taxpayer, or of a caller by issuer and subject; during a key rotation those by earlier keys follow. */
export const pseudonym: Command = {
  takesArgument: true,
  options: ['issuer'],
  async run(argument, { issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const sealer = new Sealer(loadConfig());
    const hashes =
      issuer === undefined
        ? sealer.digests('taxpayer', identifiers.taxpayerId(argument))
        : sealer.digests('caller', callerKey(issuer, argument));
    return { data: { pseudonym: hashes[0], previous: hashes.slice(1) }, lines: hashes };
  },
};
