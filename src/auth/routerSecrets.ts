import type { Config } from '../config/config.js';
import type { Secret } from '../config/secret.js';
import { minRouterSecretLength } from '../config/settingSchemas.js';
import { watchSecretFile } from '../config/watchFile.js';
import type { Logger } from '../observability/log.js';

/** What a router may present; either is accepted. */
export interface RouterSecrets {
  readonly current: Secret | undefined;
  readonly previous: Secret | undefined;
}

/**
 * The secrets shared with the router. Those that came from a file follow it: a rotation is to write the old secret to the
 * previous file, the new one to the current, then the new one to the router; no process restarts.
 */
export function followRouterSecrets(config: Config['federation'], log: Logger) {
  const secrets: { current: Secret | undefined; previous: Secret | undefined } = {
    current: config.secret,
    previous: config.previousSecret,
  };
  const follow = (which: keyof typeof secrets, file: string | undefined) =>
    file === undefined
      ? () => {}
      : watchSecretFile(file, {
          minLength: minRouterSecretLength,
          current: () => secrets[which],
          onRotated: (secret) => {
            secrets[which] = secret;
            log.info({ which }, 'the secret shared with the router was rotated');
          },
          onRefused: () =>
            log.warn({ which }, 'the secret shared with the router is too short in its file: the one in use stays'),
        });
  const stops = [follow('current', config.secretFile), follow('previous', config.previousSecretFile)];
  return {
    secrets: (): RouterSecrets => secrets,
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
