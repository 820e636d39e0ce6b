// Prints a token for the developer mode of the gateway. Nothing but the token goes to standard output.
import { parseArgs } from 'node:util';
import { ensureBuilt } from './build.js';

const usage = `Prints a token that the gateway accepts in developer mode (npm start without configuration).

  npm run --silent dev:token -- [options]

  --scope "<scope> <scope>"   what the token allows; may be repeated; all scopes when left out
  --taxpayer <id>             a taxpayer the token may see; may be repeated; all taxpayers when left out
  --subject <text>            who the caller is (local-developer)
  --ttl-seconds <number>      how long the token is good (28800)
  --dir <directory>           where the signing key is kept (.taxpayer-gateway in the working directory)
  --help                      this text

Example: npm run --silent dev:token -- --scope "taxpayers:read refresh-jobs:read" --taxpayer <id>
`;

try {
  await main();
} catch (error) {
  process.stderr.write(`dev-token: ${error.message}\n`);
  process.exitCode = 1;
}

async function main() {
  const { values } = parseArgs({
    options: {
      scope: { type: 'string', multiple: true },
      taxpayer: { type: 'string', multiple: true },
      subject: { type: 'string', default: 'local-developer' },
      'ttl-seconds': { type: 'string', default: '28800' },
      dir: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  await ensureBuilt();
  const { allScopes } = await import('../dist/auth/caller.js');
  const { developerDirectory, loadDeveloperKeys } = await import('../dist/auth/developerKeys.js');

  const token = {
    subject: readSubject(values.subject),
    scopes: readScopes(values, allScopes),
    taxpayers: readTaxpayers(values.taxpayer ?? []),
    ttlSeconds: readTtl(values['ttl-seconds']),
  };
  const keys = await loadDeveloperKeys(values.dir ?? developerDirectory);
  process.stdout.write(`${await keys.sign(token)}\n`);
}

/** Without --taxpayer every taxpayer may be seen, which is a scope of its own; with it, only those named. */
function readScopes({ scope, taxpayer }, allScopes) {
  const asked = scope?.flatMap((list) => list.split(/\s+/)).filter(Boolean);
  const unknown = asked?.filter((name) => !allScopes.includes(name)) ?? [];
  if (unknown.length > 0) throw new Error(`unknown scope ${unknown.join(', ')}; known are ${allScopes.join(', ')}.`);
  if (asked?.includes('taxpayers:any') && taxpayer) {
    throw new Error('--taxpayer has no effect beside the scope taxpayers:any; leave one of them out.');
  }
  const scopes = new Set(asked ?? allScopes);
  if (taxpayer) scopes.delete('taxpayers:any');
  else scopes.add('taxpayers:any');
  return [...scopes];
}

function readTaxpayers(ids) {
  if (ids.includes('')) throw new Error('--taxpayer must not be empty.');
  return ids;
}

function readSubject(subject) {
  if (subject === '' || subject.length > 255) throw new Error('--subject must have 1 to 255 characters.');
  return subject;
}

function readTtl(text) {
  const seconds = Number(text);
  if (!/^\d+$/.test(text) || seconds < 1 || seconds > 31_536_000) {
    throw new Error('--ttl-seconds must be a whole number from 1 to 31536000.');
  }
  return seconds;
}
