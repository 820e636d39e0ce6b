import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { follow } from '../process/files.js';
import { ConfigError, codeOf } from '../process/systemErrors.js';
import type { Surroundings } from '../services.js';

/** A file, and the setting that names it. */
interface NamedFile {
  readonly setting: string;
  readonly file: string;
}

/** The PEM files of one side of TLS connections: whom it trusts, and what it presents. `cert` and `key` come together. */
export type PemFiles = { readonly [Kind in 'ca' | 'cert' | 'key']?: NamedFile | undefined };

/** What the files hold. */
export type Pem = { readonly [Kind in keyof PemFiles]: Buffer | undefined };

/**
 * Reads the files. Checks each authority by itself: OpenSSL silently skips those of a list it cannot read.
 * @throws ConfigError in one line that names the setting and holds nothing of the files
 */
export function readPemFiles({ ca, cert, key }: PemFiles): Pem {
  const pem = { ca: ca && read(ca), cert: cert && read(cert), key: key && read(key) };
  // What is wrong if the next step throws.
  let problem = `${ca?.setting} does not hold certificates in PEM`;
  try {
    if (pem.ca) certificatesIn(pem.ca);
    if (!pem.cert || !pem.key) return pem;
    problem = `${cert?.setting} does not hold a certificate in PEM`;
    const [own] = certificatesIn(pem.cert);
    problem = `${key?.setting} does not hold a private key in PEM without a passphrase`;
    const privateKey = createPrivateKey(pem.key);
    problem = `${key?.setting} does not hold the private key of the first certificate in ${cert?.setting}`;
    if (!own?.checkPrivateKey(privateKey)) throw new Error('another key');
    problem = `${cert?.setting} is refused by OpenSSL: a key of its chain may be too short, or a signature too weak`;
    createSecureContext(pem);
    return pem;
  } catch {
    throw new ConfigError(problem);
  }
}

/** Where renewals, files that cannot be used, and the expiry of the certificate in use are reported. */
export type Reporting = Pick<Surroundings, 'log' | 'metrics' | 'stopped'>;

/** Reads the files as {@link readPemFiles}. Later calls `use` when they have changed and fit together. */
export function followPemFiles(files: PemFiles, reporting: Reporting, use: (pem: Pem) => void): Pem {
  const named = Object.values(files).filter((file) => file !== undefined);
  let inUse = readPemFiles(files);
  const showEnd = () => {
    if (files.cert) reporting.metrics.certificateEnds.set(files.cert.setting, endOf(inUse) / 1000);
  };
  showEnd();
  const take = () => {
    const pem = readPemFiles(files);
    if (isDeepStrictEqual(pem, inUse)) return undefined;
    use(pem);
    inUse = pem;
    showEnd();
    return { settings: named.map(({ setting }) => setting) };
  };
  follow({ ...reporting, paths: named.map(({ file }) => file), take });
  return inUse;
}

/** When the first of the certificates that are presented expires, in milliseconds since the epoch; Infinity without any. */
export function endOf({ cert }: Pem): number {
  return Math.min(...(cert ? certificatesIn(cert) : []).map(({ validTo }) => Date.parse(validTo)));
}

/** @throws Error when there is none, or one cannot be read, such as one that is cut off */
function certificatesIn(pem: Buffer): X509Certificate[] {
  const blocks = pem.toString('latin1').match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.*?(?=-----BEGIN|$)/gs);
  if (blocks === null) throw new Error('no certificate');
  return blocks.map((block) => new X509Certificate(block));
}

function read({ setting, file }: NamedFile): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`${setting} cannot be read (${codeOf(error) ?? 'unknown error'})`);
  }
}
