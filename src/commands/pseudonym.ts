import { callerKey } from '../auth/caller.js';
import { Sealer } from '../cache/sealing.js';
import { embeddedSandbox, loadConfig } from '../config/config.js';
import { identifierReader } from '../datasources/identifiers.js';
import { type Command, UsageError } from './Command.js';

export const pseudonym: Command = {
  does: 'prints the hash that stands for a taxpayer or caller in the log',
  details: 'During a key rotation the hashes by earlier keys follow.',
  takesTaxpayer: true,
  options: { issuer: 'hash of a caller: this is the iss claim of its token, and the argument its sub claim' },
  async run(argument, { issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const { cache, upstream, limits } = loadConfig();
    const { clientSecret } = upstream === 'embedded-sandbox' ? embeddedSandbox : upstream;
    const sealer = Sealer.of(cache, clientSecret);
    const [current, ...previous] =
      issuer === undefined
        ? sealer.digests('taxpayer', identifierReader(limits.idLength).taxpayerId(argument))
        : sealer.digests('caller', callerKey(issuer, argument));
    return { ok: true, data: { pseudonym: current, previous }, lines: [current ?? '', ...previous] };
  },
};
