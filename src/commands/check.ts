import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import fetch from 'node-fetch';
import { readIssuerKeys } from '../auth/discovery.js';
import type { Config } from '../config/config.js';
import { WayOut } from '../network/WayOut.js';
import { readListedDocuments } from '../operations/documents/listedDocuments.js';
import { openExistingStore } from '../stores/openStore.js';
import { StoreError } from '../stores/StoreError.js';
import type { Command } from './Command.js';
import { storeProblem } from './openStoreOf.js';

const help = `Reads the configuration and tries what it names: the lists of trusted documents, the store, the key sets of the identity
providers, the decision point, and the service. It sends no credentials and makes no token call.

Usage: taxpayer-gateway check [--json]

  --json   one JSON object

Reads the same environment as the gateway. Exit code 0 when all of it works, 1 when something does not, 2 when called wrongly.
`;

interface Part {
  readonly part: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Longest time for one part, in milliseconds. */
const limitMs = 5000;

export const check: Command = {
  help,
  async run({ config }) {
    const parts = (
      await Promise.all([
        configuration(config),
        ...documents(config),
        store(config),
        ...keySets(config),
        decisionPoint(config),
        service(config),
      ])
    ).flat();
    return {
      ok: parts.every(({ ok }) => ok),
      data: { parts },
      lines: parts.map(({ part, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'}  ${part}: ${detail}`),
    };
  },
};

async function configuration({ warnings }: Config): Promise<Part> {
  return { part: 'configuration', ok: true, detail: ['complete', ...warnings].join('; ') };
}

function documents({ trustedDocuments }: Config): Promise<Part>[] {
  const part = 'trusted documents';
  const told = (detail: string, ok = true): Part => ({ part, ok, detail });
  if (trustedDocuments === undefined) return [];
  return [
    readListedDocuments(trustedDocuments.paths).then(
      ({ size }) => told(`${size} in all lists`),
      (error: Error) => told(error.message, false),
    ),
  ];
}

/** Writes and deletes an entry that no gateway looks for. */
async function store({ cache: { url, tls }, proxies }: Config): Promise<Part> {
  const part = 'store';
  if (url === 'memory:') return { part, ok: true, detail: 'memory: each process has its own' };
  const missing = url.startsWith('lmdb:') && !existsSync(join(url.slice('lmdb:'.length), 'data.mdb'));
  if (missing) return newDirectory(resolve(url.slice('lmdb:'.length)));
  try {
    const opened = await openExistingStore(url, new WayOut(proxies, tls).tls);
    try {
      const startedAt = performance.now();
      const [key, bytes] = [`check-${randomUUID()}`, Buffer.from('check')];
      await opened.set(key, bytes, limitMs);
      const isWritten = await opened.compareAndDelete(key, bytes);
      const detail = isWritten
        ? `${opened.kind} writes, reads and deletes in ${msSince(startedAt)} ms`
        : 'it loses writes';
      return { part, ok: isWritten, detail };
    } finally {
      await opened.close();
    }
  } catch (error) {
    const isKnown = error instanceof StoreError;
    return { part, ok: false, detail: isKnown ? storeProblem(url, error) : 'CACHE_URL cannot be used' };
  }
}

/** The gateway will create it; whether it may shows the nearest directory that is there. */
async function newDirectory(directory: string): Promise<Part> {
  let parent = directory;
  while (!existsSync(parent)) parent = dirname(parent);
  const mayWrite = await access(parent, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  const detail = mayWrite ? 'lmdb: not there yet, the gateway creates it' : `CACHE_URL: ${parent} is not writable`;
  return { part: 'store', ok: mayWrite, detail };
}

function keySets({ auth, authTls, proxies }: Config): Promise<Part>[] {
  if (auth.mode !== 'jwt')
    return [Promise.resolve({ part: 'key set', ok: true, detail: `none: AUTH_MODE is ${auth.mode}` })];
  const { agentFor } = new WayOut(proxies, authTls);
  return auth.issuers.map(async (place) => {
    const read = await readIssuerKeys({ ...place, agentFor }, AbortSignal.timeout(limitMs));
    const part = `key set of ${place.issuer}`;
    if ('fault' in read) return { part, ok: false, detail: `${read.fault}: ${read.cause}` };
    return { part, ok: true, detail: read.length === 1 ? '1 usable key' : `${read.length} usable keys` };
  });
}

async function decisionPoint({ auth: { decision }, authTls, proxies }: Config): Promise<Part[]> {
  if (decision === undefined) return [];
  return [await answering('decision point', 'AUTH_DECISION_URL', decision.url, new WayOut(proxies, authTls))];
}

async function service({ upstream, service: { tls }, proxies }: Config): Promise<Part> {
  const part = 'service';
  if (upstream === 'embedded-sandbox') return { part, ok: true, detail: 'the embedded sandbox' };
  return answering(part, 'UPSTREAM_BASE_URL', upstream.baseUrl, new WayOut(proxies, tls));
}

/** Any answer will do: what a base address answers without credentials is not known. */
async function answering(part: string, setting: string, url: string, { agentFor: agent }: WayOut): Promise<Part> {
  const startedAt = performance.now();
  try {
    const signal = AbortSignal.timeout(limitMs) as never;
    const response = await fetch(url, { redirect: 'manual', signal, agent });
    response.body?.on('error', () => undefined);
    (response.body as { destroy?: () => void } | null)?.destroy?.();
    return { part, ok: true, detail: `${setting} answers (${response.status}) in ${msSince(startedAt)} ms` };
  } catch (error) {
    const reason = (error as { code?: string }).code ?? 'no answer in time';
    return { part, ok: false, detail: `${setting} does not answer: ${reason}` };
  }
}

const msSince = (startedAt: number): number => Math.round(performance.now() - startedAt);
