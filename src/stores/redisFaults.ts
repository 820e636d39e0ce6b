import { StoreError, type StoreTrouble } from './StoreError.js';

const troublesOfReplies: readonly (readonly [RegExp, StoreTrouble])[] = [
  [/^(OOM|MISCONF)$/, 'full'],
  [/^(READONLY|NOREPLICAS)$/, 'read-only'],
  [/^(NOAUTH|WRONGPASS|NOPERM)$/, 'not-permitted'],
  [/^(LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)$/, 'unreachable'],
  [/^BUSY$/, 'timed-out'],
];

/** Replies whose code is only `ERR`: these words of the server are told instead. */
const toldInWords = /^ERR DB index is out of range/;

/** Why a command failed. One that could not be sent does not say why: that is in the latest fault of the connection. */
export function storeErrorOf(error: unknown, connectionFault: StoreError | undefined): StoreError {
  const reply = replyOf(error);
  if (reply !== undefined) return refusal(reply);
  if (error instanceof Error && error.message === 'Command timed out') return new StoreError('timed-out');
  return connectionFault ?? new StoreError('unreachable');
}

/** Why there is no connection; undefined for an error that only follows from another one. */
export function connectionFaultOf(error: unknown): StoreError | undefined {
  if (wasNotSent(error)) return undefined;
  const reply = replyOf(error);
  if (reply !== undefined) return refusal(reply);
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (message === 'Command timed out') return new StoreError('timed-out');
  return new StoreError('unreachable', undefined, /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : undefined);
}

/** The first word of an error the server replied with, such as `WRONGTYPE`. */
export function replyCode(error: unknown): string | undefined {
  return replyOf(error)?.split(' ', 1)[0];
}

/** The driver had no connection to send the command on, so it can be tried again without doing anything twice. */
export const wasNotSent = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('enableOfflineQueue');

/** What the server replied. Older servers wrap the error of a script. */
function replyOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  return error.message.replace(/^ERR Error running script .*?: -(?=[A-Z]+ )/, '');
}

/** Only words of closed sets are told: a reply may hold the name of a user or a key. */
function refusal(reply: string): StoreError {
  const [code = ''] = reply.split(' ', 1);
  const trouble = troublesOfReplies.find(([codes]) => codes.test(code))?.[1] ?? 'failed';
  const command = code === 'NOPERM' ? /'([a-z|]{1,30})' command/.exec(reply)?.[1] : undefined;
  return new StoreError(trouble, undefined, toldInWords.exec(reply)?.[0] ?? (command ? `${code} ${command}` : code));
}
