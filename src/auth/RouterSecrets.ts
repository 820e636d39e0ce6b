import { hash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/secret.js';
import { minRouterSecretLength } from '../config/settings.js';
import { watchSecretFile } from '../config/watchFile.js';
import type { Logger } from '../observability/log.js';

/**
 * The secrets shared with the router: the current one and, during a rotation, the previous one. A secret that came from a
 * file follows it. To rotate, write the old secret to the previous file, the new one to the current file, then give the
 * new one to the router; no process restarts.
 */
export class RouterSecrets {
  readonly #secrets: { current: Secret | undefined; previous: Secret | undefined };
  readonly #stops: readonly (() => void)[];

  constructor(config: Config['federation'], log: Logger) {
    this.#secrets = { current: config.secret, previous: config.previousSecret };
    const follow = (which: 'current' | 'previous', file: string) =>
      watchSecretFile(file, {
        minLength: minRouterSecretLength,
        secret: this.#secrets[which],
        onRotated: (secret) => {
          this.#secrets[which] = secret;
          log.info({ which }, 'the secret shared with the router was rotated');
        },
        onRefused: () =>
          log.warn({ which }, 'the secret shared with the router is too short in its file: the one in use stays'),
      });
    this.#stops = [
      ...(config.secretFile === undefined ? [] : [follow('current', config.secretFile)]),
      ...(config.previousSecretFile === undefined ? [] : [follow('previous', config.previousSecretFile)]),
    ];
  }

  /** Whether `presented` is one of the secrets; undefined when none is set. Takes the same time whatever is wrong with it. */
  accept(presented: string | undefined): boolean | undefined {
    const { current, previous } = this.#secrets;
    if (current === undefined && previous === undefined) return undefined;
    const digest = digestOf(presented ?? '');
    const matches = [current, previous].map(
      (secret) => timingSafeEqual(digest, digestOf(secret?.reveal() ?? '')) && secret !== undefined,
    );
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
