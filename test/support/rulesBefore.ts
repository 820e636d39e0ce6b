import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { z } from 'zod';
import type { Store } from '../../src/stores/Store.js';

const envelope = z.object({ value: z.unknown(), expiresAt: z.number(), ttlMs: z.number().optional() });
const entryOf = <T>(value: z.ZodType<T>) =>
  z
    .object({ version: z.string(), fetchedAt: z.number(), value: z.unknown() })
    .transform((entry) => value.parse(entry.value));

/** The entries that the previous version accepts; it fetches anew what it cannot read. */
export const schemasBefore = {
  token: entryOf(
    z.object({
      kind: z.literal('record'),
      record: z.object({
        accessToken: z
          .string()
          .max(8192)
          .regex(/^[\x21-\x7e]+$/),
        taxpayerId: z.string(),
        name: z.string().nullable(),
        metadata: z.record(z.string(), z.unknown()).nullable(),
        lostNumber: z.string().exactOptional(),
        providerId: z.string(),
        createdAt: z.string().nullable(),
        status: z.string(),
      }),
    }),
  ),
  refusal: z.string(),
  link: z.object({
    state: z.literal('created'),
    input: z.string(),
    link: z.object({ id: z.string(), url: z.string() }),
  }),
};

export interface ScopeBefore {
  readonly store: Store;
  /** In base64. */
  readonly encryptionKey: string;
  readonly baseUrl: string;
  readonly clientId: string;
}

/** Finds and decrypts entries as the previous version did, without using any of the present code. */
export function rulesBefore({ store, encryptionKey, baseUrl, clientId }: ScopeBefore) {
  const derive = (use: string, bytes: number) => {
    const key = Buffer.from(encryptionKey, 'base64');
    return Buffer.from(hkdfSync('sha256', key, 'taxpayer-gateway/store', `v1/encryption-key/${use}`, bytes));
  };
  const keyOf = (parts: readonly string[]) => {
    const text = JSON.stringify([baseUrl, clientId, '2024-01-01', ...parts]);
    return createHmac('sha256', derive('names', 32)).update(text).digest('base64url');
  };
  const open = (key: string, sealed: Buffer) => {
    const header = sealed.subarray(0, 17);
    if (header[0] !== 1 || !header.subarray(1, 5).equals(derive('id', 4))) throw new Error('sealed by another key');
    const decipher = createDecipheriv('aes-256-gcm', derive('encryption', 32), header.subarray(5));
    decipher.setAAD(Buffer.concat([header, Buffer.from(key)]));
    decipher.setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(17, -16)), decipher.final()]);
  };
  return {
    /** Undefined when there is no entry of that name. @throws when the previous version could not read the entry */
    async read<T>(schema: z.ZodType<T>, ...parts: string[]): Promise<T | undefined> {
      const key = keyOf(parts);
      const sealed = await store.get(key);
      return sealed && schema.parse(envelope.parse(JSON.parse(String(open(key, sealed)))).value);
    },
    async count(...parts: string[]): Promise<number> {
      return Number(await store.get(keyOf(parts)));
    },
  };
}
