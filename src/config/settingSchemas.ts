import { z } from 'zod';

// What the text of a variable may be; the message of a failed check is shown to the operator.

export const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((n) => n >= min && n <= max, `must be a whole number from ${min} to ${max}`);

export const share = z
  .string()
  .regex(/^(0?\.\d+|[01](\.0+)?)$/, 'must be a number above 0, and at most 1')
  .transform(Number)
  .refine((n) => n > 0, 'must be a number above 0, and at most 1');

export const url = (protocols: readonly string[]) =>
  z.string().refine(
    (text) => {
      if (!URL.canParse(text)) return false;
      const parsed = new URL(text);
      return (
        protocols.includes(parsed.protocol) && parsed.username === '' && parsed.search === '' && parsed.hash === ''
      );
    },
    `must be an absolute ${protocols.join(' or ')} URL without user name, query or fragment`,
  );

export const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item).min(1, 'must name at least one'));

export const origin = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text,
    'must be origins such as https://app.example, separated by commas',
  );

export const flag = z.enum(['true', 'false'], { error: 'must be true or false' }).transform((text) => text === 'true');

export const base64Key = z
  .string()
  .refine(
    (text) => /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) && Buffer.from(text, 'base64').length === 32,
    'must be 32 bytes in base64',
  );

export const anyText = z.string();

/** Shortest secret that may be shared with a router, in characters. */
export const minRouterSecretLength = 16;
export const routerSecret = anyText.min(
  minRouterSecretLength,
  `must have at least ${minRouterSecretLength} characters`,
);
