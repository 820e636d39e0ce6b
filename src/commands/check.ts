import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readIssuerKeys } from '../auth/IssuerKeys.js';
import { type Config, loadConfig } from '../config/config.js';
import { Agents } from '../network/agents.js';
import { fetchJson, NoAnswer } from '../network/exchange.js';
import { endOf, readPemFiles } from '../network/pemFiles.js';
import { readListed } from '../operations/TrustedDocuments.js';
import { readProviders } from '../schema/Provider.js';
import { directoryIn } from '../stores/openStore.js';
import type { Command } from './Command.js';
import { withStore } from './withStore.js';

/** Longest time for one part, in milliseconds. */
const limitMs = 5000;

/**
 * Tests the configuration, and whether all but the trace collector can be reached. Sends the service and the decision point no
 * credentials.
 */
export const check: Command = {
  async run() {
    const parts = await Promise.all(partsOf(loadConfig()));
    return {
      ok: parts.every(({ ok }) => ok),
      data: { parts },
      lines: parts.map(({ part, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'}  ${part}: ${detail}`),
    };
  },
};

function partsOf(config: Config) {
  const { tls, upstreamTls, UPSTREAM_BASE_URL: baseUrl, AUTH_DECISION_URL: decisionUrl } = config;
  const documents = config.TRUSTED_DOCUMENTS_FILE;
  const others = new Agents(config);
  const parts = [
    testPart('configuration', async () => {
      for (const files of [tls, upstreamTls]) {
        const isExpired = files && endOf(readPemFiles(files)) < Date.now();
        if (isExpired) throw new Error(`${files.cert?.setting} holds a certificate that has expired`);
      }
      readProviders(config.PROVIDERS_FILE);
      const state = baseUrl ? 'complete' : 'complete, for the embedded sandbox';
      return [state, ...config.warnings].join('; ');
    }),
    documents && testPart('trusted documents', async () => `${(await readListed(documents)).byId.size} in all lists`),
    testPart('store', () => testStore(config.CACHE_URL)),
    ...config.issuers.map((each) =>
      testPart(`key set of ${each.issuer}`, async () => {
        const { keys } = await readIssuerKeys(each, others);
        return keys.length === 1 ? '1 key' : `${keys.length} keys`;
      }),
    ),
    decisionUrl && testPart('decision point', () => testServer('AUTH_DECISION_URL', decisionUrl, others)),
    baseUrl && testPart('service', () => testServer('UPSTREAM_BASE_URL', baseUrl, new Agents(config, upstreamTls))),
  ];
  return parts.filter((part) => !!part);
}

/** Whether a part works, and a few words about it, or about why it does not. `test` throws or rejects if it does not. */
async function testPart(part: string, test: () => Promise<string>) {
  try {
    return { part, ok: true, detail: await test() };
  } catch (error) {
    const detail = error instanceof NoAnswer ? `${error.kind}: ${error.reason}` : (error as Error).message;
    return { part, ok: false, detail };
  }
}

/**
 * In Redis, writes items that no gateway looks for, enough that a cluster keeps them on several servers; all are gone within an
 * hour. A directory may be in use: it is only looked at.
 */
async function testStore(url: string): Promise<string> {
  if (url === 'memory:') return 'memory: each process has its own';
  const path = directoryIn(url);
  if (path) return testDirectory(path);
  return withStore(url, 'write', async (opened) => {
    const startedAt = performance.now();
    const value = Buffer.from('check');
    // All operations of a store, because a user of Redis may be permitted some of them.
    const isKept = async () => {
      const name = `check-${crypto.randomUUID()}`;
      const place = { record: name, field: 'token' };
      await opened.acquire(place, { owner: 'check', leaseMs: limitMs });
      await opened.settle(place, 'check', { version: 'check', value, ageMs: 0, begunAt: 0, ttlMs: limitMs });
      await opened.fields(name);
      await opened.forget(name);
      await opened.note(`${name}-list`, value);
      await opened.notesSince(`${name}-list`, 0);
      await opened.increment(`${name}-count`, limitMs);
      await opened.put(`${name}-item`, value, limitMs, 'always');
      return opened.deleteIf(`${name}-item`, value);
    };
    const kept = await Promise.all(Array.from({ length: 16 }, isKept));
    if (kept.includes(false)) throw new Error('it loses writes');
    const works = `redis writes, reads and deletes in ${msSince(startedAt)} ms`;
    const policy = (await opened.evictionPolicy?.()) ?? 'noeviction';
    if (policy === 'noeviction') return works;
    return `${works}; set maxmemory-policy noeviction: ${policy} may delete idempotency keys, and links are created twice`;
  });
}

async function testDirectory(path: string): Promise<string> {
  let present = path;
  while (!existsSync(present)) present = dirname(present);
  await access(`${present}/.`, constants.W_OK | constants.X_OK).catch(() => {
    throw new Error(`CACHE_URL: ${present} is not a directory that can be written to`);
  });
  return present === path ? 'file: can be written' : 'file: not there yet, the gateway creates it';
}

/** Any answer of the server itself counts as success: nobody knows what a base URL answers without credentials. */
async function testServer(setting: string, url: string, agents: Agents): Promise<string> {
  const startedAt = performance.now();
  const answer = await fetchJson(agents, url, limitMs).then(
    () => 'HTTP 200',
    ({ kind, reason, status }: NoAnswer) => {
      // Without a status, it is not HTTP; with another of these, a proxy or balancer in front of the server has answered.
      const isFromServer = ![undefined, 502, 503, 504].includes(status);
      if (['invalid', 'server-error'].includes(kind) && isFromServer) return reason;
      throw new Error(`${setting} does not answer: ${reason}`);
    },
  );
  return `${setting} answers (${answer}) in ${msSince(startedAt)} ms`;
}

const msSince = (startedAt: number): number => Math.round(performance.now() - startedAt);
