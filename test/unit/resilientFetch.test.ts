import dns from 'node:dns';
import { get } from 'node:http';
import { jest } from '@jest/globals';
import nodeFetch from 'node-fetch';
import { Secret } from '../../src/config/Secret.js';
import { GatewayError } from '../../src/errors/errors.js';
import { Agents } from '../../src/network/agents.js';
import { ResilientFetch } from '../../src/upstream/ResilientFetch.js';
import { atEnd } from '../support/atEnd.js';
import { freePort } from '../support/freePort.js';

it('a failed try counts for the breaker, also where the budget ends before the next', async () => {
  const agents = new Agents({});
  atEnd(() => agents.stop());
  const times = { UPSTREAM_TIMEOUT_MS: 500, UPSTREAM_DEADLINE_MS: 2000, BREAKER_RESET_MS: 10_000 };
  let tries = 0;
  const failures: string[] = [];
  const fetch: typeof nodeFetch = (...request) => {
    tries += 1;
    return nodeFetch(...request);
  };
  const http = new ResilientFetch({ ...times, agents, fetch });
  const origin = `http://127.0.0.1:${await freePort()}`;
  for (let caller = 0; caller < 5; caller += 1) {
    let isSpent = false;
    const beforeTry = async () => {
      if (isSpent) throw new GatewayError('TOKEN_BUDGET_EXHAUSTED', 'spent');
      isSpent = true;
    };
    const call = { endpoint: 'taxpayerToken', headers: {}, decode: (json: unknown) => json } as const;
    const about = { url: `${origin}/${caller}`, holder: `caller ${caller}`, taxpayer: `taxpayer ${caller}` };
    await http.call({ ...call, ...about, beforeTry }).catch(({ message }) => failures.push(message));
  }
  expect(tries).toBe(3);
  expect(failures.slice(3)).toEqual(Array(2).fill(expect.stringContaining('kept failing')));
});

it('calls share a lookup of their name (many of a dead name would hold up those of others), and idle connections end', () => {
  const lookup = jest.spyOn(dns, 'lookup').mockReturnValue(undefined as never);
  const url = new URL('http://service.example');
  const agent = new Agents({}).newAgent(url);
  for (let n = 0; n < 3; n += 1)
    get(url, { agent })
      .on('error', () => {})
      .destroy();
  expect(lookup).toHaveBeenCalledTimes(1);
  const tunnels = new Agents({ HTTPS_PROXY: new Secret('http://proxy.example') });
  for (const each of [agent, tunnels.newAgent(new URL('https://service.example'))])
    expect(each).toHaveProperty('options.timeout', 30_000);
});
