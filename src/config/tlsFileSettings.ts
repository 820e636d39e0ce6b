import type { TlsFiles } from '../network/tlsFiles.js';
import type { Expect, SettingName } from './settings.js';

type FileSetting = Extract<SettingName, `${string}_${'CA' | 'CERT' | 'KEY'}_FILE`>;

/** The PEM files that three settings name; undefined if none is set. `needs`: a condition for setting them, in words. */
export const tlsFilesOf =
  (parsed: Readonly<Record<FileSetting, string | undefined>>, expect: Expect) =>
  (ca: FileSetting, cert: FileSetting, key: FileSetting, needs?: readonly [isSo: boolean, what: string]) => {
    expect(cert, !parsed[cert] === !parsed[key], `${cert} and ${key} must be set together`);
    for (const setting of needs ? [ca, cert] : []) {
      expect(setting, needs?.[0] || parsed[setting] === undefined, `${setting} needs ${needs?.[1]}`);
    }
    return filesBy((setting) => parsed[setting as FileSetting], ca, cert, key);
  };

/** The same for the trace collector, by OpenTelemetry's variables; its SDK would not notice when a file changes. */
export function collectorTlsFiles(
  env: Readonly<Record<string, string | undefined>>,
  expect: Expect,
): TlsFiles | undefined {
  const nameOf = (what: string) => {
    const names = [`OTEL_EXPORTER_OTLP_TRACES_${what}`, `OTEL_EXPORTER_OTLP_${what}`] as const;
    return env[names[0]] ? names[0] : names[1];
  };
  const [ca, cert, key] = [nameOf('CERTIFICATE'), nameOf('CLIENT_CERTIFICATE'), nameOf('CLIENT_KEY')];
  expect('OTEL_EXPORTER_OTLP_ENDPOINT', !env[cert] === !env[key], `${cert} and ${key} must be set together`);
  return filesBy((name) => env[name] || undefined, ca, cert, key);
}

function filesBy(pathOf: (name: string) => string | undefined, ca: string, cert: string, key: string) {
  const fileOf = (setting: string) => {
    const file = pathOf(setting);
    return file === undefined ? undefined : { setting, file };
  };
  const files: TlsFiles = { ca: fileOf(ca), cert: fileOf(cert), key: fileOf(key) };
  return files.ca || files.cert ? files : undefined;
}
