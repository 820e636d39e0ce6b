import type { KeyMaterial } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import type { Store } from '../../src/stores/Store.js';

/** An encryption key of 32 equal bytes. */
export const encryptionKey = (byte: number): KeyMaterial => ({
  from: 'encryption-key',
  secret: new Secret(Buffer.alloc(32, byte).toString('base64')),
});

/** `store` with the names of its calls recorded. */
export function counted(store: Store): { readonly store: Store; readonly calls: string[] } {
  const calls: string[] = [];
  const noted = new Proxy(store, {
    get: (target, operation) => {
      const value = Reflect.get(target, operation);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        calls.push(String(operation));
        return value.apply(target, args);
      };
    },
  });
  return { store: noted, calls };
}
