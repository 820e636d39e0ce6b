import { execFileSync } from 'node:child_process';

/** Writes a new self-signed pair. */
export function issueCertificate(
  commonName: string,
  files: { readonly certFile: string; readonly keyFile: string },
): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', files.keyFile];
  const subject = ['-subj', `/CN=${commonName}`, '-days', '1', '-out', files.certFile];
  execFileSync('openssl', ['req', '-x509', ...key, ...subject], { stdio: 'ignore' });
}
