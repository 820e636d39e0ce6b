import { accessSync, constants } from 'node:fs';
import { isIP } from 'node:net';
import proxyaddr from 'proxy-addr';
import * as z from 'zod';
import { allScopes } from '../auth/caller.js';
import { urlOf } from '../process/hosts.js';
import { codeOf } from '../process/systemErrors.js';

// What the text of a variable may be; the message of a failed check is shown to the operator.

export type Form<T> = z.ZodType<T, string>;

const plain = 'must be UTF-8 without line breaks, tabs or other control characters';
/** U+FFFD is what Node.js puts in place of each byte that is not UTF-8. */
export const text = z.string().refine((value) => !/[\p{Cc}\ufffd]/u.test(value), { error: plain });
const fitting = (fits: (text: string) => boolean, error: string) => text.refine(fits, { error });

export function oneOf<const Word extends string>(...words: Word[]) {
  return z.enum(words, { error: `must be one of ${words.join(', ')}` });
}

export const flag = oneOf('true', 'false').transform((word) => word === 'true');

export const integer = (min: number, max: number) => {
  const fits = (digits: string) => /^\d+$/.test(digits) && Number(digits) >= min && Number(digits) <= max;
  return fitting(fits, `must be a whole number from ${min} to ${max}`).transform(Number);
};

export const share = text.regex(/^(0?\.\d+|[01](\.0+)?)$/, 'must be a number from 0 to 1').transform(Number);

/** A file or folder that can be read now; what it holds is checked where it is used. */
export const file = text.superRefine((path, context) => {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `cannot be read (${codeOf(error)})` });
  }
});

/** Items separated by commas or line breaks. Only the items are checked. */
export function list<T>(item: Form<T>) {
  return z
    .string()
    .transform((items) =>
      items
        .split(/[,\n]/)
        .map((part) => part.trim())
        .filter(Boolean),
    )
    .pipe(z.array(item).min(1, 'must name at least one'));
}

/** `URL` alone accepts a lone `?` or `#`, blanks, and missing or reversed slashes. The scheme is changed to lower case. */
const url = (form: RegExp, without: string) =>
  fitting(
    (address) => form.test(address) && URL.canParse(address),
    `must be an absolute http: or https: URL without ${without}, fragment, blanks or backslashes`,
  ).transform((address) => address.replace(/^https?:/i, (scheme) => scheme.toLowerCase()));

export const webUrl = url(/^https?:\/\/[^\s\\/?#@]+(\/[^\s\\?#]*)?$/i, 'user name, query');
/** May have a query: in the URLs of Microsoft's key sets it names an application. */
export const keySetUrl = url(/^https?:\/\/[^\s\\/?#@]+(\/[^\s\\#]*)?$/i, 'user name');

/** A URL that paths are appended to; slashes at its end are removed. */
export const baseUrl = webUrl.transform((address) => address.replace(/\/+$/, ''));

const scope = z.enum(allScopes);
const mapOfScopes = z.record(text, z.array(scope).or(scope.transform((one) => [one])));
export const scopesMap = z.string().transform((json, context) => {
  try {
    return new Map(Object.entries(mapOfScopes.parse(JSON.parse(json))));
  } catch {
    const expected =
      'a JSON object such as {"Taxpayers.Read":"taxpayers:read"}, each value a scope or a list of scopes';
    context.addIssue({ code: 'custom', message: `must be ${expected}; the scopes are ${allScopes.join(', ')}` });
    return z.NEVER;
  }
});

/** An app's own scheme, as in `capacitor://localhost`; `URL` gives its origin as `null`, browsers send it as it is. */
const appOrigin = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\*]+$/;
export const origin = fitting(
  (address) => appOrigin.test(address) || (!address.includes('*') && urlOf(address)?.origin === address),
  'must be origins as browsers send them, such as https://app.example or capacitor://localhost, without a slash at the end and without *, separated by commas',
);

/** As in curl, a proxy without a scheme is an http: one. */
export const proxy = text
  .transform((address) => (address.includes('://') ? address : `http://${address}`))
  .pipe(
    fitting(
      isProxy,
      'must be the http: or https: URL of a proxy, such as http://user:password@proxy.example:3128, percent-encoded',
    ),
  );

function isProxy(address: string): boolean {
  try {
    const { protocol, hostname, pathname, search, hash, username, password } = new URL(address);
    decodeURIComponent(username + password);
    return ['http:', 'https:'].includes(protocol) && hostname !== '' && `${pathname}${search}${hash}` === '/';
  } catch {
    return false;
  }
}

export const proxyException = text.regex(
  /^(\*|[^\s/*[\]:]+|[\da-f.:]+)$/i,
  'must be host names and addresses, without ports, brackets and *., separated by commas; ranges such as 10.0.0.0/8 are not supported',
);

/** The library also takes `10/8`, which it reads as 0.0.0.10/8, and `010.0.0.0/8` as 8.0.0.0/8. */
const isAddressRange = (address: string) => {
  try {
    return isIP(address.replace(/\/.*/, '')) > 0 && proxyaddr.compile(address) !== undefined;
  } catch {
    return false;
  }
};

export const addressRange = fitting(
  isAddressRange,
  'must be addresses and ranges such as 10.0.0.0/8 (but not /0), separated by commas',
);

export const base64Key = text.regex(/^[A-Za-z0-9+/_-]{43}={0,2}$/, 'must be 32 bytes in base64');

export const routerSecrets = list(
  text.regex(/^[\x20-\x7e]{16,}$/, 'must have at least 16 characters, all printable ASCII'),
).transform((all) => all.join(','));

/** What an Authorization header can carry: a token, or a scheme and a token (RFC 9110 section 11.4). */
export const decisionToken = text.regex(
  /^[\x21-\x7e]+( [\x21-\x7e]+)?$/,
  'must be a token, or a scheme and a token such as "Basic dXNlcjpwYXNz", in printable ASCII',
);

/** `file://host` and `file:~` are refused: they name no host and no home, but would become directories that nobody meant. */
export const storeUrl = text.regex(
  /^(memory:|file:(?!\/\/|~).+|rediss?(\+sentinel|\+cluster)?:\/\/.+)$/,
  'must be memory:, file:<directory> (without // or ~), redis://…, rediss://…, redis+sentinel://… or redis+cluster://…',
);
