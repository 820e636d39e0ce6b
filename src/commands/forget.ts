import { writeForget } from '../cache/Forgets.js';
import type { Sealer } from '../cache/sealing.js';
import { loadConfig } from '../config/config.js';
import { identifierReader, type TaxpayerId } from '../datasources/identifiers.js';
import { AuditLog } from '../observability/AuditLog.js';
import { LineLimit } from '../observability/LineLimit.js';
import { createLogger } from '../observability/log.js';
import { type Command, taxpayerArgument } from './Command.js';
import { withStoreOf } from './openStoreOf.js';

export const forget: Command = {
  does: 'erases what is stored about a taxpayer, in the whole fleet',
  details:
    'Within 5 seconds every process that reaches the store drops it from its memory too. Writes an audit line to standard error, and each process one to its log. After a failure repeat it: not everything is erased. During a key rotation give every key.',
  argument: taxpayerArgument,
  async run(argument) {
    const config = loadConfig();
    const subject = identifierReader(config.limits.idLength).taxpayerId(argument);
    return withStoreOf(config, async ({ sealer, sealed, entries }) => {
      const request = crypto.randomUUID();
      await writeForget(sealed, { id: request, state: 'begun', subject, at: Date.now() });
      const erased = await entries.erase(subject);
      await writeForget(sealed, { id: request, state: 'done', subject, at: Date.now() });
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
  const auditLog = new AuditLog({ log, sealer, limit: new LineLimit(), which: 'decisions' });
  auditLog.write({ action: 'taxpayer-forgotten', outcome, requestId, taxpayer });
}
