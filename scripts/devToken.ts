// Prints a token for the developer mode of the gateway (npm run dev:token). Nothing but the token goes to standard output.

import { parseArgs } from 'node:util';
import { allScopes, type Scope } from '../src/auth/caller.js';
import { developerToken } from '../src/auth/developerToken.js';

const usage = `Prints a token that the gateway accepts in developer mode (npm start without configuration).

  npm run --silent dev:token -- [options]

  --scope "<scope> <scope>"   what the token allows; may be repeated; all scopes when left out
  --taxpayer <id>             a taxpayer the token may see; may be repeated; all taxpayers when left out
  --subject <text>            who the caller is (local-developer)
  --ttl-seconds <number>      how long the token is good (28800)
  --help                      this text

Example: npm run --silent dev:token -- --scope "taxpayers:read refresh-jobs:read" --taxpayer <id>
`;

try {
  await main();
} catch (error) {
  process.stderr.write(`dev-token: ${(error as Error).message}\n`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      scope: { type: 'string', multiple: true },
      taxpayer: { type: 'string', multiple: true },
      subject: { type: 'string', default: 'local-developer' },
      'ttl-seconds': { type: 'string', default: '28800' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  const { subject, taxpayer: taxpayers = [] } = values;
  const ttlSeconds = Number(values['ttl-seconds']);
  if (taxpayers.includes('')) throw new Error('--taxpayer must not be empty.');
  if (subject === '' || subject.length > 255) throw new Error('--subject must have 1 to 255 characters.');
  if (!/^\d+$/.test(values['ttl-seconds']) || ttlSeconds < 1 || ttlSeconds > 31_536_000) {
    throw new Error('--ttl-seconds must be a whole number from 1 to 31536000.');
  }
  const scopes = readScopes(values.scope, taxpayers);
  process.stdout.write(`${await developerToken(subject, scopes, taxpayers, ttlSeconds)}\n`);
}

/** Without --taxpayer every taxpayer may be seen, which is a scope of its own; with it, only those named. */
function readScopes(lists: string[] | undefined, taxpayers: string[]): Scope[] {
  const asked = lists?.flatMap((list) => list.split(/\s+/)).filter(Boolean);
  const unknown = asked?.filter((name) => !allScopes.includes(name as Scope)) ?? [];
  if (unknown.length > 0) throw new Error(`unknown scope ${unknown.join(', ')}; known are ${allScopes.join(', ')}.`);
  if (asked?.includes('taxpayers:any') && taxpayers.length > 0) {
    throw new Error('--taxpayer has no effect beside the scope taxpayers:any; leave one of them out.');
  }
  const scopes = new Set((asked as Scope[] | undefined) ?? allScopes);
  if (taxpayers.length > 0) scopes.delete('taxpayers:any');
  else scopes.add('taxpayers:any');
  return [...scopes];
}
