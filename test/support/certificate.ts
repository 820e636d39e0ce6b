import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Writes a new self-signed pair. */
export function issueCertificate(commonName: string, { certFile, keyFile }: CertificateFiles, key = newKey): void {
  openssl('req', '-x509', ...key, '-keyout', keyFile, '-subj', `/CN=${commonName}`, '-days', '1', '-out', certFile);
}

/** A new certificate authority, with its files in `directory`. */
export function makeAuthority(directory: string, name: string) {
  const own = filesIn(directory, name);
  issueCertificate(name, own);
  return {
    ...own,
    /** Issues a certificate for `names` such as `DNS:router.example`; with `days` below 0, an expired one. */
    issue(commonName: string, names?: string, days = 1, files = filesIn(directory, `${name}-${commonName}`)) {
      const request = join(directory, `${name}-${commonName}.csr`);
      const extensions = join(directory, `${name}-${commonName}.ext`);
      openssl('req', ...newKey, '-keyout', files.keyFile, '-subj', `/CN=${commonName}`, '-out', request);
      writeFileSync(extensions, `basicConstraints=CA:FALSE\n${names === undefined ? '' : `subjectAltName=${names}\n`}`);
      const by = ['-CA', own.certFile, '-CAkey', own.keyFile, '-CAcreateserial', '-extfile', extensions];
      openssl('x509', '-req', '-in', request, ...by, '-days', `${days}`, '-out', files.certFile);
      return files;
    },
  };
}

export type Authority = ReturnType<typeof makeAuthority>;

function filesIn(directory: string, name: string): CertificateFiles {
  return { certFile: join(directory, `${name}.crt`), keyFile: join(directory, `${name}.key`) };
}

function openssl(...args: readonly string[]) {
  execFileSync('openssl', args, { stdio: 'ignore' });
}
