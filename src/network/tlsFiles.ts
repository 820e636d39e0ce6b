import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../config/ConfigError.js';
import { follow } from '../config/files.js';
import type { Logger } from '../observability/log.js';

/** A file, and the setting that names it. */
interface NamedFile {
  readonly setting: string;
  readonly file: string;
}

/** The PEM files of one side of TLS connections: whom it trusts, and what it presents. `cert` and `key` come together. */
export interface TlsFiles {
  readonly ca?: NamedFile | undefined;
  readonly cert?: NamedFile | undefined;
  readonly key?: NamedFile | undefined;
}

/** What the files hold. */
export type TlsMaterial = { readonly [Which in keyof TlsFiles]?: Buffer };

const kinds = ['ca', 'cert', 'key'] as const;

/** Reads the files. @throws ConfigError in one line that names the setting and holds nothing of the files */
export function readTlsFiles(files: TlsFiles): TlsMaterial {
  return checked(files, Object.fromEntries(kinds.flatMap((kind) => (files[kind] ? [[kind, read(files[kind])]] : []))));
}

/** Calls `use` when the files have changed and fit together; until then the old ones stay in use. Returns how to stop. */
export function followTlsFiles(
  files: TlsFiles,
  inUse: TlsMaterial,
  log: Logger,
  use: (material: TlsMaterial) => void,
): () => void {
  const named = kinds.flatMap((kind) => files[kind] ?? []);
  let latest = inUse;
  const onChange = () => {
    try {
      const material = readTlsFiles(files);
      if (isDeepStrictEqual(material, latest)) return;
      use(material);
      latest = material;
      log.info({ settings: named.map(({ setting }) => setting) }, 'the TLS certificate was renewed');
    } catch (error) {
      const problem = (error as Error).message;
      log.warn({ problem }, 'the new TLS files cannot be used: the certificate in use stays');
    }
  };
  return follow(
    named.map(({ file }) => file),
    onChange,
  );
}

/** Checks each authority by itself: in a list of authorities OpenSSL silently skips those it cannot read. */
function checked(files: TlsFiles, material: TlsMaterial): TlsMaterial {
  const { ca, cert, key } = material;
  const [certSetting, keySetting] = [files.cert?.setting, files.key?.setting];
  let problem = `${files.ca?.setting} does not hold certificates in PEM`;
  try {
    if (ca) certificatesIn(ca);
    if (!cert || !key) return material;
    problem = `${certSetting} does not hold a certificate in PEM`;
    const [own, ...others] = certificatesIn(cert);
    problem = `${keySetting} does not hold a private key in PEM without a passphrase`;
    const privateKey = createPrivateKey(key);
    problem = others.some((one) => one.checkPrivateKey(privateKey))
      ? `${certSetting} must begin with the certificate that ${keySetting} belongs to, before those of its authorities`
      : `${keySetting} does not hold the private key of ${certSetting}`;
    if (!own?.checkPrivateKey(privateKey)) throw new Error('another key');
    problem = `${certSetting} and ${keySetting} cannot be used by this Node.js`;
    createSecureContext({ cert, key });
    return material;
  } catch {
    throw new ConfigError([problem]);
  }
}

/** @throws Error when there is none, or one cannot be read */
function certificatesIn(pem: Buffer): X509Certificate[] {
  const blocks = pem.toString('latin1').match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*-----END[^-]*-----/g);
  if (blocks === null) throw new Error('no certificate');
  return blocks.map((block) => new X509Certificate(block));
}

function read({ setting, file }: NamedFile): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError([`${setting} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`]);
  }
}
