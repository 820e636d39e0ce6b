// A month of an office's taxpayers in virtual time: what a freshness rule costs in token calls, and how late changes are shown.

import { Response } from 'node-fetch';
import { Sealer } from '../../src/cache/Sealer.js';
import { startDatasources } from '../../src/datasources/startDatasources.js';
import { startAgents } from '../../src/network/agents.js';
import { LocalStore } from '../../src/stores/LocalStore.js';
import { configOf, log, metrics } from '../../test/simulation/wireProcess.js';
import { replacePlatform, restorePlatform } from '../../test/support/platform.js';
import { seeded } from '../../test/support/seeded.js';
import { quantile } from '../quantile.js';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const begins = Date.UTC(2026, 5, 1); // a Monday
const ends = begins + 30 * day;

const isOfficeTime = (time) => {
  const hourOfDay = (time % day) / hour;
  return hourOfDay >= 9 && hourOfDay < 17 && new Date(time).getUTCDay() % 6 !== 0;
};

/** The statuses of a taxpayer, each with its time. They became clients evenly over four months, of which the last is the month. */
function lifeOf(random) {
  const about = (ms) => ms * (0.5 + random());
  const inOffice = (time) => (isOfficeTime(time) ? time : inOffice(time + hour * random()));
  const created = inOffice(ends - 120 * day * random());
  const isAtOnce = random() < 0.2; // in the office; the others find the link in their mail
  const signs = created + about(isAtOnce ? 5 * minute : 6 * hour);
  const submitted = signs + about(8 * minute);
  const decided = inOffice(submitted + about(10 * day));
  return [
    { at: created, status: 'CREATED' },
    { at: signs, status: 'CONSENT_RECEIVED', isSigning: isAtOnce },
    { at: submitted, status: 'TAX_AUTHORIZATION_SUBMITTED', isSigning: true },
    { at: decided, status: 'AUTHORIZED' },
    { at: decided + about(60 * day), status: 'COMPLETED' },
  ];
}

/**
 * The token calls of the month and the median lag while a taxpayer signs, in milliseconds. A dashboard looks at each taxpayer once a
 * minute in office hours, a case worker every 15 seconds at one who signs. The lag of a change begins with the first look after it.
 */
export async function monthWith(settings) {
  const random = seeded(14);
  const lives = Array.from({ length: 400 }, () => lifeOf(random));
  let now = begins - 10 * day; // what the gateway knows when the month begins is not counted
  let calls = 0;
  const lags = [];
  const fetch = async (url) => {
    const id = url.split('/').at(-2);
    const { status } = lives[id].findLast(({ at }) => at <= now);
    const created_at = new Date(lives[id][0].at);
    const record = { access_token: 'not-real', taxpayer_id: id, provider_id: 'irs', status, created_at };
    calls += 1;
    return new Response(JSON.stringify(record));
  };
  replacePlatform(() => ({ now: () => now, monotonicNow: () => now }));
  const config = configOf({ TOKEN_BUDGET_PER_HOUR: '0', ...settings });
  const { broker, stop } = startDatasources({
    ...{ config, fetch, metrics, log, agents: startAgents(config), store: new LocalStore() },
    sealer: new Sealer(config),
  });
  const look = async (life, id) => {
    for (const change of life) if (change.at <= now) change.seenFrom ??= now;
    const { status } = (await broker.record(String(id))).value.record;
    const shown = life.findIndex((change) => change.status === status);
    for (const change of life.slice(0, shown + 1)) {
      if (change.isSigning && !change.isShown && change.at >= begins) lags.push(now - change.seenFrom);
      change.isShown = true;
    }
  };
  for (; now < ends; now += now < begins ? hour : minute / 4) {
    if (now === begins) calls = 0;
    if (!isOfficeTime(now)) continue;
    for (const [id, life] of lives.entries()) {
      const [created, signs, submitted] = life;
      const isSigning = (signs.isSigning || signs.isShown) && !submitted.isShown;
      if (created.at <= now && (isSigning || now % minute === 0)) await look(life, id);
    }
  }
  stop();
  restorePlatform();
  return { calls, medianLagMs: quantile(lags, 0.5) };
}
