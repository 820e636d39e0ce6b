import type { Sealer } from '../cache/sealing.js';
import { identifierReader, type TaxpayerId } from '../datasources/identifiers.js';
import { refusalName } from '../datasources/tokenAnswer.js';
import { AuditLog } from '../observability/AuditLog.js';
import { createLogger } from '../observability/log.js';
import { RepeatedLines } from '../observability/RepeatedLines.js';
import type { Command } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

const help = `Erases everything that is stored about a taxpayer: token record, job statuses, leases and cool-downs. Within 5 seconds,
every process that reaches the store also erases it from its memory. The next query reads from the service again.
With CACHE_URL=file:<directory>, stop the gateway, run this, and start it: nothing else is lost.

Usage: taxpayer-gateway forget <taxpayerId> [--json]

  <taxpayerId>   the service's id of the taxpayer, or - to read it from standard input
  --json         print one JSON object

Needs the gateway's environment variables. Writes an
audit line to standard error, and each process writes one to its log. Exit codes: 0 success; 1 the store or the
configuration cannot be used, so not everything is erased: repeat the command; 2 wrong arguments.
`;

export const forget: Command = {
  help,
  argument: 'a taxpayer id',
  async run({ config, argument }) {
    const subject = identifierReader(config.limits.idLength).taxpayerId(argument);
    return withStoreOf(config, 'write', async ({ sealer, sealed }) => {
      const request = crypto.randomUUID();
      const coolDowns = (await sealed.erase(refusalName(subject))) ? 1 : 0;
      const erased = coolDowns + (await sealed.forget({ id: request, subject }));
      audit(sealer, request, subject, `erased ${erased}`);
      const taxpayer = sealer.digest('taxpayer', subject);
      return {
        ok: true,
        data: { taxpayer, erased, request },
        lines: [`taxpayer ${taxpayer}: ${erased} entries erased (request ${request})`],
      };
    });
  },
};

function audit(sealer: Sealer, requestId: string, taxpayer: TaxpayerId, outcome: string): void {
  const log = createLogger('info', { write: (line: string) => void process.stderr.write(line) });
  const auditLog = new AuditLog({ log, sealer, repeated: new RepeatedLines(), which: 'decisions' });
  auditLog.write({ action: 'taxpayer-forgotten', outcome, requestId, taxpayer });
}
