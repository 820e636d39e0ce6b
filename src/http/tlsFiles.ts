import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { readCompleteSync, watchFile } from '../config/watchFile.js';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate chain and its key, both PEM. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Reads a certificate and its key. @throws Error in one line that names the setting and holds nothing of the files */
export function readTlsFiles({ certFile, keyFile }: TlsFiles): TlsMaterial {
  return checked({ cert: readFor('TLS_CERT_FILE', certFile), key: readFor('TLS_KEY_FILE', keyFile) });
}

/** Calls `onChange` when both files have changed to a pair that fits, until then `onTrouble`. Returns how to stop. */
export function watchTlsFiles(
  files: TlsFiles,
  inUse: TlsMaterial,
  onChange: (material: TlsMaterial) => void,
  onTrouble: (problem: string) => void,
): () => void {
  let latest = inUse;
  const follow = (which: keyof TlsMaterial, file: string) =>
    watchFile(file, (content) => {
      if (content.equals(latest[which])) return;
      latest = { ...latest, [which]: content };
      try {
        onChange(checked(latest));
      } catch (error) {
        onTrouble((error as Error).message);
      }
    });
  const stops = [follow('cert', files.certFile), follow('key', files.keyFile)];
  return () => {
    for (const stop of stops) stop();
  };
}

function checked({ cert, key }: TlsMaterial): TlsMaterial {
  let problem = 'TLS_CERT_FILE does not hold a certificate in PEM';
  try {
    new X509Certificate(cert);
    problem = 'TLS_KEY_FILE does not hold the private key, in PEM and without a passphrase, of TLS_CERT_FILE';
    createSecureContext({ cert, key });
    return { cert, key };
  } catch {
    throw new Error(problem);
  }
}

function readFor(setting: string, file: string): Buffer {
  try {
    return readCompleteSync(file);
  } catch (error) {
    throw new Error(`${setting} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
}
