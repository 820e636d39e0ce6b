import type { JWTPayload } from 'jose';
import * as z from 'zod';
import type { Config } from '../config/config.js';
import { allScopes, type Caller, type Scope } from './caller.js';

const taxpayerIds = z.array(z.string());

/** What the bearer of a verified token may do. A claim of an unexpected shape grants nothing. */
export function rightsIn(payload: JWTPayload, config: Config): Pick<Caller, 'scopes' | 'taxpayers'> {
  const claim = config.AUTH_SCOPES_CLAIM.map((path) => claimAt(payload, path)).find((found) => found !== undefined);
  // Scopes separated by spaces (RFC 8693 section 4.2), or a list.
  const granted: unknown[] = typeof claim === 'string' ? claim.split(' ') : [claim].flat();
  const scopesOf = (value: unknown) =>
    config.AUTH_SCOPES_MAP.get(value as string) ?? allScopes.filter((scope) => scope === value);
  const scopes = new Set<Scope>(granted.flatMap(scopesOf));
  const listed = taxpayerIds.safeParse([claimAt(payload, config.AUTH_TAXPAYERS_CLAIM)].flat()).data;
  return { scopes, taxpayers: scopes.has('taxpayers:any') ? 'any' : new Set(listed) };
}

/** The claim at `path`. Names may contain dots, as `https://id.example/roles` does: the longest existing name wins. */
export function claimAt(claims: unknown, path: string): unknown {
  if (typeof claims !== 'object' || claims === null) return undefined;
  if (Object.hasOwn(claims, path)) return (claims as Record<string, unknown>)[path];
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot);
    if (Object.hasOwn(claims, name)) return claimAt((claims as Record<string, unknown>)[name], path.slice(dot + 1));
  }
  return undefined;
}
