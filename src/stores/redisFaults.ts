import { codeOf } from '../process/systemErrors.js';
import { causes, StoreError } from './StoreError.js';

/** Replies of a server that does nothing at the moment, whatever it is asked. */
const notNow = /^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY)$/;

/** Why a command failed. For a command that could not be sent, the latest fault of the connection says why. */
export const storeErrorOf = (error: unknown, connectionFault: StoreError | undefined): StoreError =>
  saidBy(error) ?? connectionFault ?? new StoreError('unreachable');

/** Why there is no connection, after one more `error` of it; `known` is the reason that earlier errors gave. */
export function faultAfter(error: Error, known: StoreError | undefined): StoreError | undefined {
  if (error instanceof StoreError) return known ?? error;
  const said = saidBy(error);
  if (said !== undefined) return said;
  if (allUnreachable.test(error.message)) return new StoreError('unreachable');
  const code = error.message.startsWith('Protocol error') ? 'EPROTO' : codeOf(error);
  if (code === undefined) return known; // this error gives no reason
  if (code !== 'ECONNRESET' && code !== 'EPIPE') return new StoreError('unreachable', code);
  return known ?? hungUp; // a server that refuses says why once, and from then on only closes
}

/** The driver hides why it could not connect to a sentinel or a node. */
const allUnreachable = /^(All sentinels are unreachable|Failed to refresh slots cache)/;

/** The connection ended without a reason. */
export const hungUp = new StoreError('unreachable', 'ECONNRESET');

/** The key holds something that is not ours. */
export const isOfAnotherType = (error: unknown): boolean => replyOf(error)?.startsWith('WRONGTYPE') === true;

/** What an error says of the server: that it refused, or did not answer. */
function saidBy(error: unknown): StoreError | undefined {
  const reply = replyOf(error);
  if (reply !== undefined) return refusal(reply);
  return error instanceof StoreError ? error : undefined;
}

/**
 * What the server replied. Of a script, older servers wrap the error, and newer ones leave out the code of a missing permission;
 * the driver wraps the errors of a cluster and of sentinels.
 */
function replyOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'ReplyError') {
    if (error.message.startsWith("ERR The user executing the script can't run this command")) return 'NOPERM';
    return error.message.replace(/^ERR Error running script .*?: -?(?=[A-Z]+ )/, '');
  }
  if ('lastNodeError' in error) return replyOf(error.lastNodeError);
  return /^All sentinels are unreachable.* Last error: ([A-Z]+ .*)/.exec(error.message)?.[1];
}

/** Takes only words of closed sets from the reply, which may hold the name of a user or a key. */
function refusal(reply: string): StoreError {
  const [code = ''] = reply.split(' ', 1);
  const trouble = notNow.test(code) ? 'unreachable' : 'refused';
  const command = code === 'NOPERM' ? /'([a-z|]{1,30})' command/.exec(reply)?.[1] : undefined;
  const known = Object.keys(causes).find((words) => reply.startsWith(words)) ?? code;
  return new StoreError(trouble, command ? `${known} ${command}` : known);
}
