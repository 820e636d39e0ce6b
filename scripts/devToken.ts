// Prints a token for the developer mode of the gateway (npm run dev:token). Nothing but the token goes to standard output.

import { parseArgs } from 'node:util';
import { SignJWT } from 'jose';
import { allScopes, type Scope } from '../src/auth/caller.js';
import { developer } from '../src/auth/developerPolicy.js';

const usage = `Prints a token that the gateway accepts in developer mode (npm start without configuration).

  npm run --silent dev:token -- [options]

  --scope "<scope> <scope>"   what the token allows; may be repeated; all scopes when left out
  --taxpayer <id>             a taxpayer the token may see; may be repeated; all taxpayers when left out
  --subject <text>            who the caller is (local-developer)
  --ttl-seconds <number>      how long the token is valid (28800, which is 8 hours)
  --help                      this text
`;

try {
  const { values } = parseArgs({
    options: {
      scope: { type: 'string', multiple: true },
      taxpayer: { type: 'string', multiple: true, default: [] },
      subject: { type: 'string', default: 'local-developer' },
      'ttl-seconds': { type: 'string', default: '28800' },
      help: { type: 'boolean', default: false },
    },
  });
  const seconds = values['ttl-seconds'];
  if (!/^[1-9]\d{0,7}$/.test(seconds)) throw new Error('--ttl-seconds must be a whole number from 1 to 99999999.');
  const scopes = readScopes(values.scope, values.taxpayer);
  const token = new SignJWT({ scope: scopes.join(' '), taxpayer_ids: values.taxpayer })
    .setProtectedHeader({ alg: developer.algorithm })
    .setIssuer(developer.issuer)
    .setAudience(developer.audience)
    .setSubject(values.subject)
    .setIssuedAt()
    .setExpirationTime(`${seconds}s`);
  process.stdout.write(values.help ? usage : `${await token.sign(developer.key)}\n`);
} catch (error) {
  process.stderr.write(`dev-token: ${(error as Error).message}\n`);
  process.exitCode = 1;
}

/** Without --taxpayer every taxpayer may be seen, which is a scope of its own; with it, only those named. */
function readScopes(lists: string[] | undefined, taxpayers: string[]): Scope[] {
  const asked = lists?.flatMap((list) => list.split(/\s+/)).filter(Boolean);
  const unknown = asked?.filter((name) => !allScopes.includes(name as Scope)) ?? [];
  if (unknown.length > 0) throw new Error(`unknown scope ${unknown.join(', ')}; known are ${allScopes.join(', ')}.`);
  if (asked?.includes('taxpayers:any') && taxpayers.length > 0) {
    throw new Error('--taxpayer has no effect beside the scope taxpayers:any; leave one of them out.');
  }
  const scopes = (asked as Scope[] | undefined) ?? allScopes.filter((scope) => scope !== 'taxpayers:any');
  return taxpayers.length > 0 ? scopes : [...new Set<Scope>([...scopes, 'taxpayers:any'])];
}
