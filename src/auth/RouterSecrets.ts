import { hash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/secret.js';
import { minRouterSecretLength } from '../config/settingSchemas.js';
import { watchSecretFile } from '../config/watchFile.js';
import type { Logger } from '../observability/log.js';

/**
 * The secrets shared with the router: the current one and, during a rotation, the previous one. A secret that came from a
 * file follows it. To rotate, write the old secret to the previous file, the new one to the current file, then give the
 * new one to the router; no process restarts.
 */
export class RouterSecrets {
  readonly #secrets: Record<'current' | 'previous', Secret | undefined>;
  readonly #stops: readonly (() => void)[];

  constructor({ secret, previousSecret, secretFile, previousSecretFile }: Config['federation'], log: Logger) {
    this.#secrets = { current: secret, previous: previousSecret };
    const files = { current: secretFile, previous: previousSecretFile };
    this.#stops = (['current', 'previous'] as const).map((which) => {
      const file = files[which];
      if (file === undefined) return () => {};
      return watchSecretFile(file, {
        minLength: minRouterSecretLength,
        current: () => this.#secrets[which],
        onRotated: (rotated) => {
          this.#secrets[which] = rotated;
          log.info({ which }, 'the secret shared with the router was rotated');
        },
        onRefused: () =>
          log.warn({ which }, 'the secret shared with the router is too short in its file: the one in use stays'),
      });
    });
  }

  /** Whether `presented` is one of the secrets; undefined when none is set. Takes the same time whatever is wrong with it. */
  accept(presented: string | undefined): boolean | undefined {
    const secrets = Object.values(this.#secrets).filter((secret) => secret !== undefined);
    if (secrets.length === 0) return undefined;
    const digest = digestOf(presented ?? '');
    const matches = secrets.map((secret) => timingSafeEqual(digest, digestOf(secret.reveal())));
    return presented !== undefined && matches.includes(true);
  }

  /** Ends the watches of the files. */
  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

function digestOf(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
