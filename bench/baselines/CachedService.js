// The service behind an in-process cache, as a careful team would write it by hand. Concurrent readers share one call. Tokens
// are cached for 15 minutes, job statuses for a second, failures not at all.

import { toRefreshJob, toTaxpayerToken } from './schema.js';

const tokenTtlMs = 15 * 60_000;
const jobTtlMs = 1000;

/** `token` and `job` return null when the service answers 404. */
export class CachedService {
  #upstream;
  #credentials;
  #tokens = new TtlCache(tokenTtlMs);
  #jobs = new TtlCache(jobTtlMs);

  constructor({ upstream, clientId, clientSecret }) {
    this.#upstream = upstream;
    this.#credentials = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
  }

  token(taxpayerId) {
    return this.#tokens.get(taxpayerId, async () => {
      const record = await this.#call(`/auth/tax-payer/${encodeURIComponent(taxpayerId)}/token`, this.#credentials);
      return record && toTaxpayerToken(record);
    });
  }

  job(taxpayerId, jobId) {
    return this.#jobs.get(`${taxpayerId}\n${jobId}`, async () => {
      const token = await this.token(taxpayerId);
      if (!token) return null;
      const path = `/tax-payer/${encodeURIComponent(taxpayerId)}/refresh/${encodeURIComponent(jobId)}`;
      const job = await this.#call(path, token.accessToken);
      return job && toRefreshJob(job);
    });
  }

  async #call(path, bearer) {
    const headers = { Authorization: `Bearer ${bearer}`, 'Service-API-Version': '2024-01-01' };
    const response = await fetch(this.#upstream + path, { headers });
    if (response.status === 404) return null;
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
