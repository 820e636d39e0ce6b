import { appendFileSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { followSecrets, loadConfig } from '../../../src/config/config.js';
import { followPemFiles, type Pem } from '../../../src/network/pemFiles.js';
import { Metrics } from '../../../src/observability/Metrics.js';
import { untilEnd } from '../../support/atEnd.js';
import { issueCertificate } from '../../support/certificate.js';
import { recordedLog } from '../../support/recordedLog.js';
import { scratch } from '../../support/scratch.js';
import { times } from '../../support/times.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

const upstream = { UPSTREAM_BASE_URL: 'http://127.0.0.1:9/', UPSTREAM_CLIENT_ID: 'a', AUTH_MODE: 'disabled' };
/** As long as it takes to be looked at in the middle more than once. */
const pieces = times(60, (n) => `piece-${n} `);
const pauseMs = 50;
const secret = `${pieces.join('')}end`;

const itMostlyWaits = together();

/** As an editor or a script does that writes in place, only slower. */
async function writeSlowly(path: string, parts: readonly string[]) {
  writeFileSync(path, '');
  for (const part of parts) {
    await sleep(pauseMs);
    appendFileSync(path, part);
  }
}

describe('A secret file that is written in place', () => {
  const begin = (before: string) => {
    const file = join(scratch(), 'secret');
    writeFileSync(file, before);
    const taken: string[] = [];
    const { lines, log } = recordedLog();
    const config = loadConfig({ ...upstream, UPSTREAM_CLIENT_SECRET_FILE: file });
    const { UPSTREAM_CLIENT_SECRET: clientSecret } = config;
    followSecrets(config, { log, stopped: untilEnd() }, () => taken.push(clientSecret.reveal()));
    return { file, taken, lines };
  };

  itMostlyWaits('is taken when it is complete, not before', async () => {
    const { file, taken, lines } = begin('the-secret-before');
    await writeSlowly(file, [...pieces, 'end\n']);
    await until(() => taken.length > 0);
    expect(taken).toEqual([secret]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'info', setting: 'UPSTREAM_CLIENT_SECRET', msg: 'a changed file was read again' },
    ]);
  });

  itMostlyWaits('is completed soon, if the start saw half of it', async () => {
    const [first = '', ...rest] = pieces;
    const { file, taken } = begin(first);
    for (const part of [...rest, 'end']) appendFileSync(file, part);
    await until(() => taken.length > 0);
    expect(taken).toEqual([secret]);
  });
});

itMostlyWaits('A certificate and its key that are renewed by a symbolic link are never looked at apart', async () => {
  const directory = scratch();
  for (const name of ['one', 'two']) {
    mkdirSync(join(directory, name));
    issueCertificate(name, { certFile: join(directory, name, 'tls.crt'), keyFile: join(directory, name, 'tls.key') });
  }
  const current = join(directory, 'current');
  const point = (name: string) => {
    symlinkSync(name, `${current}.new`);
    renameSync(`${current}.new`, current);
  };
  point('one');
  const files = {
    cert: { setting: 'TLS_CERT_FILE', file: join(current, 'tls.crt') },
    key: { setting: 'TLS_KEY_FILE', file: join(current, 'tls.key') },
  };
  const { lines, log } = recordedLog();
  const renewed = new Promise<Pem>((resolve) => {
    followPemFiles(files, { log, metrics: new Metrics(), stopped: untilEnd() }, resolve);
  });
  await sleep(1500); // it has looked at what is in use
  point('two');
  expect((await renewed).key).toEqual(readFileSync(join(directory, 'two', 'tls.key')));
  await sleep(1500);
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({ level: 'info', settings: ['TLS_CERT_FILE', 'TLS_KEY_FILE'] }),
  ]);
});
