import type { Sealer } from '../cache/sealing.js';
import { loadConfig } from '../config/config.js';
import { identifierReader, type TaxpayerId } from '../datasources/identifiers.js';
import { refusalName } from '../datasources/tokenAnswer.js';
import { AuditLog } from '../observability/AuditLog.js';
import { LineLimit } from '../observability/LineLimit.js';
import { createLogger } from '../observability/log.js';
import type { Command } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

export const forget: Command = {
  does: 'erases what is stored about a taxpayer, in the whole fleet',
  details:
    'Within 5 seconds every process that reaches the store drops it from its memory too. Writes an audit line to standard error, and each process one to its log. After a failure repeat it: not everything is erased. With CACHE_URL=file:<directory>, stop the gateway, run this and start it: nothing else is lost.',
  takesTaxpayer: true,
  async run(argument) {
    const config = loadConfig();
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
  const auditLog = new AuditLog(new LineLimit(log, sealer), 'decisions');
  auditLog.write({ action: 'taxpayer-forgotten', outcome, requestId, taxpayer });
}
