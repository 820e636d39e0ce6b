import { hash } from 'node:crypto';

/** Every scope the gateway knows; a token may carry others, which grant nothing. */
export const allScopes = [
  'client-links:create',
  'taxpayers:read',
  'taxpayer-tokens:read',
  'refresh-jobs:read',
  'taxpayers:any',
] as const;

export type Scope = (typeof allScopes)[number];

/** The scopes that concern one taxpayer: the actions that a decision point is asked about. */
export type TaxpayerScope = Extract<Scope, 'taxpayers:read' | 'taxpayer-tokens:read' | 'refresh-jobs:read'>;

/** What a decision point is told of a caller: the subject, the issuer and chosen claims. */
export interface Profile {
  readonly subject: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Tells callers apart by `properties` and {@link Caller.key} together. */
  readonly key: string;
}

/** Who is calling and what they may do. Made only from a verified token, or by a mode that asks for none. */
export interface Caller {
  readonly kind: 'bearer' | 'anyone' | 'router';
  /** Tells callers apart (issuer and subject together) without naming them. */
  readonly key: string;
  /** The key under which the use of shared resources is counted; undefined for callers who cannot be told apart. */
  readonly holder: string | undefined;
  readonly scopes: ReadonlySet<Scope>;
  /** The ids of the taxpayers this caller may see; `any` for the scope `taxpayers:any`. */
  readonly taxpayers: ReadonlySet<string> | 'any';
  /** Undefined without a decision point. */
  readonly profile?: Profile | undefined;
  /** When the token ends, in milliseconds since the epoch; `Infinity` for callers without a token. */
  readonly expiresAt: number;
}

/** Every caller with AUTH_MODE=disabled, and one without a token in developer mode. */
export const anyone: Caller = { ...withoutToken('anyone', allScopes, 'any'), holder: undefined };

/** A federation router that presented its secret and no user's token: it may read the subgraph's schema and no taxpayer. */
export const router = withoutToken('router', [], new Set());

function withoutToken(kind: Caller['kind'], scopes: readonly Scope[], taxpayers: Caller['taxpayers']): Caller {
  const key = callerKey('', kind);
  return { kind, key, holder: key, scopes: new Set(scopes), taxpayers, expiresAt: Infinity };
}

/** The same subject of two issuers is two callers. JSON separates the two unambiguously. */
export function callerKey(issuer: string, subject: string): string {
  return hash('sha256', JSON.stringify([issuer, subject]), 'base64url');
}
