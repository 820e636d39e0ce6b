/**
 * The path and query of a request's target. A proxy may send the whole address instead (RFC 9112, section 3.2.2); the host in
 * it decides nothing, as `Host` does not.
 */
export function pathAndQueryOf(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') || rest === target ? rest : `/${rest}`;
}
