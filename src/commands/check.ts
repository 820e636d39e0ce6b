import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import fetch from 'node-fetch';
import type { NoAnswer } from '../auth/fetchJson.js';
import { readIssuerKeys } from '../auth/IssuerKeys.js';
import { ConfigError } from '../config/ConfigError.js';
import { type Config, loadConfig } from '../config/config.js';
import { Agents } from '../network/agents.js';
import { readListed } from '../operations/TrustedDocuments.js';
import { openExistingStore } from '../stores/openStore.js';
import { StoreError } from '../stores/StoreError.js';
import type { Command } from './Command.js';
import { storeProblem } from './openStoreOf.js';

/** What was found out about one part. */
interface Found {
  readonly ok: boolean;
  readonly detail: string;
}

interface Part extends Found {
  readonly part: string;
}

/** Longest time for one part, in milliseconds. */
const limitMs = 5000;

export const check: Command = {
  does: 'tests the configuration and whether everything it names can be reached',
  details: 'It sends no credentials to the service and makes no token call.',
  async run() {
    const config = loadConfig();
    const parts = await Promise.all([
      configuration(config),
      ...documents(config),
      named('store', store(config)),
      ...keySets(config),
      ...decisionPoint(config),
      named('service', service(config)),
    ]);
    return {
      ok: parts.every(({ ok }) => ok),
      data: { parts },
      lines: parts.map(({ part, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'}  ${part}: ${detail}`),
    };
  },
};

async function named(part: string, found: Promise<Found>): Promise<Part> {
  return { part, ...(await found) };
}

async function configuration({ warnings }: Config): Promise<Part> {
  return { part: 'configuration', ok: true, detail: ['complete', ...warnings].join('; ') };
}

function documents({ trustedDocuments }: Config): Promise<Part>[] {
  const part = 'trusted documents';
  const told = (detail: string, ok = true): Part => ({ part, ok, detail });
  if (trustedDocuments === undefined) return [];
  return [
    readListed(trustedDocuments.paths).then(
      ({ byId }) => told(`${byId.size} in all lists`),
      (error: Error) => told(error.message, false),
    ),
  ];
}

/** In Redis, writes and deletes items that no gateway looks for. A directory may be in use: it is only looked at. */
async function store({ cache: { url } }: Config): Promise<Found> {
  if (url === 'memory:') return { ok: true, detail: 'memory: each process has its own' };
  if (url.startsWith('file:')) return directory(resolve(url.slice('file:'.length)));
  try {
    const opened = await openExistingStore(url, 'write');
    try {
      const startedAt = performance.now();
      const bytes = Buffer.from('check');
      // Several, because a cluster keeps them on several servers.
      const keys = Array.from({ length: 8 }, () => `check-${crypto.randomUUID()}`);
      await Promise.all(keys.map((key) => opened.put(key, bytes, limitMs, 'always')));
      const deleted = await Promise.all(keys.map((key) => opened.deleteIf(key, bytes)));
      const isWritten = deleted.every(Boolean);
      const detail = isWritten
        ? `${opened.kind} writes, reads and deletes in ${msSince(startedAt)} ms`
        : 'it loses writes';
      return { ok: isWritten, detail };
    } finally {
      await opened.close();
    }
  } catch (error) {
    const isKnown = error instanceof StoreError;
    return { ok: false, detail: isKnown ? storeProblem(url, error) : 'CACHE_URL cannot be used' };
  }
}

/** The gateway creates the directory, if it may write to the nearest parent that exists. */
async function directory(path: string): Promise<Found> {
  let existing = path;
  while (!existsSync(existing)) existing = dirname(existing);
  const mayWrite = await access(existing, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!mayWrite) return { ok: false, detail: `CACHE_URL: ${path} cannot be created or written to` };
  return {
    ok: true,
    detail: existing === path ? 'file: can be written' : 'file: not there yet, the gateway creates it',
  };
}

function keySets({ auth, proxies }: Config): Promise<Part>[] {
  if (auth.mode !== 'jwt')
    return [Promise.resolve({ part: 'key set', ok: true, detail: `none: AUTH_MODE is ${auth.mode}` })];
  const { agentFor } = new Agents(proxies);
  return auth.issuers.map(async (place) => {
    const part = `key set of ${place.issuer}`;
    try {
      const { keys } = await readIssuerKeys({ ...place, agentFor }, AbortSignal.timeout(limitMs));
      return { part, ok: true, detail: keys.length === 1 ? '1 key' : `${keys.length} keys` };
    } catch (error) {
      const { fault, message } = error as NoAnswer;
      return { part, ok: false, detail: `${fault}: ${message}` };
    }
  });
}

function decisionPoint({ auth: { decision }, proxies }: Config): Promise<Part>[] {
  if (decision === undefined) return [];
  return [named('decision point', answering('AUTH_DECISION_URL', decision.url, new Agents(proxies)))];
}

async function service({ upstream, service: { tls }, proxies }: Config): Promise<Found> {
  if (upstream === 'embedded-sandbox') return { ok: true, detail: 'the embedded sandbox' };
  try {
    return await answering('UPSTREAM_BASE_URL', upstream.baseUrl, new Agents(proxies, tls));
  } catch (error) {
    if (error instanceof ConfigError) return { ok: false, detail: error.message };
    throw error;
  }
}

/** Any answer counts as success: what a base address answers without credentials is not known. */
async function answering(setting: string, url: string, { agentFor: agent }: Agents): Promise<Found> {
  const startedAt = performance.now();
  try {
    const signal = AbortSignal.timeout(limitMs) as never;
    const response = await fetch(url, { redirect: 'manual', signal, agent });
    response.body?.on('error', () => undefined);
    (response.body as { destroy?: () => void } | null)?.destroy?.();
    return { ok: true, detail: `${setting} answers (${response.status}) in ${msSince(startedAt)} ms` };
  } catch (error) {
    const reason = (error as { code?: string }).code ?? 'no answer in time';
    return { ok: false, detail: `${setting} does not answer: ${reason}` };
  }
}

const msSince = (startedAt: number): number => Math.round(performance.now() - startedAt);
