import { callerKey } from '../auth/caller.js';
import { Sealer } from '../cache/sealing.js';
import { embeddedSandbox } from '../config/config.js';
import { identifierReader } from '../datasources/identifiers.js';
import { type Command, UsageError } from './Command.js';

const help = `Prints the keyed hash that stands for a taxpayer or caller in the log, then its hash by each older key of CACHE_ENCRYPTION_KEY.

Usage: taxpayer-gateway pseudonym <taxpayerId> [--json]
       taxpayer-gateway pseudonym --issuer <issuer> <subject> [--json]

  <taxpayerId>   the service's id of the taxpayer, or - to read it from standard input
  --issuer       print the hash of a caller instead: give the iss claim of its token here, and the sub claim as <subject>
  --json         print one JSON object

Needs the gateway's environment variables. Exit codes: 0 success, 1 the configuration cannot be used, 2 wrong arguments.
`;

export const pseudonym: Command = {
  help,
  argument: 'a taxpayer id',
  option: 'issuer',
  async run({ config: { cache, upstream, limits }, argument, option: issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const { clientSecret } = upstream === 'embedded-sandbox' ? embeddedSandbox : upstream;
    const sealer = Sealer.of(cache, clientSecret);
    const [current, ...previous] =
      issuer === undefined
        ? sealer.digests('taxpayer', identifierReader(limits.idLength).taxpayerId(argument))
        : sealer.digests('caller', callerKey(issuer, argument));
    return { ok: true, data: { pseudonym: current, previous }, lines: [current ?? '', ...previous] };
  },
};
