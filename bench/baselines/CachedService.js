// The service behind an in-process cache, as a careful team would write it by hand. Concurrent readers share one call. Tokens
// are cached for 15 minutes, job statuses for a second, failures not at all.

import { toRefreshJob, toTaxpayerToken } from './schema.js';

const tokenTtlMs = 15 * 60_000;
const jobTtlMs = 1000;

const { UPSTREAM_BASE_URL: upstream, UPSTREAM_CLIENT_ID: id, UPSTREAM_CLIENT_SECRET: secret } = process.env;
const credentials = Buffer.from(`${id}:${secret}`).toString('base64');

export class CachedService {
  #tokens = new TtlCache(tokenTtlMs);
  #jobs = new TtlCache(jobTtlMs);

  token(taxpayerId) {
    return this.#tokens.get(taxpayerId, async () => {
      const path = `/auth/tax-payer/${encodeURIComponent(taxpayerId)}/token`;
      return toTaxpayerToken(await this.#call(path, credentials));
    });
  }

  job(taxpayerId, jobId) {
    return this.#jobs.get(`${taxpayerId}\n${jobId}`, async () => {
      const { accessToken } = await this.token(taxpayerId);
      const path = `/tax-payer/${encodeURIComponent(taxpayerId)}/refresh/${encodeURIComponent(jobId)}`;
      return toRefreshJob(await this.#call(path, accessToken));
    });
  }

  async #call(path, bearer) {
    const headers = { Authorization: `Bearer ${bearer}`, 'Service-API-Version': '2024-01-01' };
    const response = await fetch(upstream + path, { headers });
    if (!response.ok) throw new Error(`The service answered ${response.status}`);
    return response.json();
  }
}

class TtlCache {
  #entries = new Map();
  #ttlMs;

  constructor(ttlMs) {
    this.#ttlMs = ttlMs;
  }

  get(key, load) {
    const held = this.#entries.get(key);
    if (held && held.until > Date.now()) return held.value;
    const entry = { value: load(), until: Date.now() + this.#ttlMs };
    this.#entries.set(key, entry);
    entry.value.then(
      // Keeps the value in place of its promise, so that a cache hit is synchronous.
      (value) => {
        entry.value = value;
      },
      () => this.#entries.delete(key),
    );
    return entry.value;
  }
}
