import type { PemFiles } from '../network/pemFiles.js';
import type { Expect, Parsed } from './settings.js';

/** The PEM files to serve with; undefined for plain HTTP. */
export function serverTlsOf(parsed: Parsed, expect: Expect): PemFiles | undefined {
  const tls = tlsFilesOf(parsed, 'TLS_CLIENT_CA_FILE', 'TLS_CERT_FILE', 'TLS_KEY_FILE', expect);
  expect('TLS_CLIENT_CA_FILE', !tls?.ca || !!tls.cert, 'TLS_CLIENT_CA_FILE needs TLS_CERT_FILE and TLS_KEY_FILE');
  const probes = 'TLS_CLIENT_CA_FILE needs METRICS_PORT, where probes without a certificate ask for the health';
  expect('METRICS_PORT', !tls?.ca || parsed.METRICS_PORT !== undefined, probes);
  return tls;
}

/** The PEM files for calls to the service; undefined if none is set. `isTls`: whether its address is an `https:` one. */
export function serviceTlsOf(parsed: Parsed, isTls: boolean, expect: Expect): PemFiles | undefined {
  for (const name of ['UPSTREAM_CA_FILE', 'UPSTREAM_CERT_FILE'] as const) {
    expect(name, isTls || parsed[name] === undefined, `${name} needs an https: UPSTREAM_BASE_URL`);
  }
  return tlsFilesOf(parsed, 'UPSTREAM_CA_FILE', 'UPSTREAM_CERT_FILE', 'UPSTREAM_KEY_FILE', expect);
}

function tlsFilesOf(
  parsed: Parsed,
  ca: 'TLS_CLIENT_CA_FILE' | 'UPSTREAM_CA_FILE',
  cert: 'TLS_CERT_FILE' | 'UPSTREAM_CERT_FILE',
  key: 'TLS_KEY_FILE' | 'UPSTREAM_KEY_FILE',
  expect: Expect,
): PemFiles | undefined {
  expect(cert, !parsed[cert] === !parsed[key], `${cert} and ${key} must be set together`);
  const fileOf = (setting: typeof ca | typeof cert | typeof key) => {
    const file = parsed[setting];
    return file === undefined ? undefined : { setting, file };
  };
  const files = { ca: fileOf(ca), cert: fileOf(cert), key: fileOf(key) };
  return files.ca || files.cert ? files : undefined;
}
