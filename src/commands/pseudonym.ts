import { callerKey } from '../auth/caller.js';
import { Sealer } from '../cache/sealing.js';
import { embeddedSandbox } from '../config/config.js';
import { identifierReader } from '../datasources/identifiers.js';
import { type Command, UsageError } from './Command.js';

const help = `Prints the keyed hash by which the log names a taxpayer or a caller. While a previous key is configured, its hash follows.

Usage: taxpayer-gateway pseudonym <taxpayerId> [--json]
       taxpayer-gateway pseudonym --issuer <issuer> <subject> [--json]

  <taxpayerId>   the service's id of the taxpayer; - reads it from standard input
  --issuer       names a caller instead: the iss of its token, with its sub in place of the taxpayer's id
  --json         one JSON object

Reads the same environment as the gateway. Exit code 0; 1 when the configuration cannot be used; 2 when called wrongly.
`;

export const pseudonym: Command = {
  help,
  argument: 'a taxpayer id',
  option: 'issuer',
  async run({ config: { cache, upstream, limits }, argument, option: issuer }) {
    if (issuer !== undefined && !(issuer && argument)) throw new UsageError('Expected an issuer and a subject');
    const { clientSecret } = upstream === 'embedded-sandbox' ? embeddedSandbox : upstream;
    const { rings } = Sealer.of(cache, clientSecret);
    const [current, ...previous] = rings.map((ring) =>
      issuer === undefined
        ? ring.digest('taxpayer', identifierReader(limits.idLength).taxpayerId(argument))
        : ring.digest('caller', callerKey(issuer, argument)),
    );
    return { ok: true, data: { pseudonym: current, previous }, lines: [current ?? '', ...previous] };
  },
};
