import { z } from 'zod';

// What the text of a variable may be; the message of a failed check is shown to the operator.

export const text = z.string();

export const integer = (min: number, max: number) =>
  text
    .refine((digits) => /^\d+$/.test(digits) && Number(digits) >= min && Number(digits) <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    })
    .transform(Number);

export const share = text
  .refine((number) => /^(0?\.\d+|[01](\.0+)?)$/.test(number) && Number(number) > 0, {
    error: 'must be a number above 0, and at most 1',
  })
  .transform(Number);

export const webUrl = text.refine(
  (address) => {
    if (!URL.canParse(address)) return false;
    const { protocol, username, search, hash } = new URL(address);
    return ['http:', 'https:'].includes(protocol) && username === '' && search === '' && hash === '';
  },
  { error: 'must be an absolute http: or https: URL without user name, query or fragment' },
);

export const list = (item: z.ZodType<string, string>) =>
  text
    .transform((items) =>
      items
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item).min(1, 'must name at least one'));

export const origin = text.refine((address) => URL.canParse(address) && new URL(address).origin === address, {
  error: 'must be origins such as https://app.example, separated by commas',
});

export const flag = z.enum(['true', 'false'], { error: 'must be true or false' }).transform((word) => word === 'true');

export const base64Key = text.refine(
  (key) => /^[A-Za-z0-9+/_-]+={0,2}$/.test(key) && Buffer.from(key, 'base64').length === 32,
  { error: 'must be 32 bytes in base64' },
);

/** Shortest secret that may be shared with a router, in characters. */
export const minRouterSecretLength = 16;
export const routerSecret = text.min(minRouterSecretLength, `must have at least ${minRouterSecretLength} characters`);
