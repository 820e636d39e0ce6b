import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { text } from '../config/forms.js';
import { withoutByteOrderMark } from '../process/files.js';
import { codeOf } from '../process/systemErrors.js';
import { openEnum } from './fields.js';

/** One value of the `Provider` enum: the service's `value` (interface, 2.4) under the `name` the schema shows. */
export type ProviderEntry = z.output<typeof providersFile>[number];

/** The 13 values of the interface. The exact strings of the ten vendor values are not public: `PROVIDERS_FILE` supplies them. */
const defaultProviders: readonly ProviderEntry[] = [
  { name: 'IRS', value: 'irs', description: 'The tax authority itself.' },
  { name: 'IRS_TAX_PRO', value: 'irs_tax_pro', description: 'The tax authority, through a tax professional.' },
  { name: 'SERVICE_SANDBOX', value: 'service-sandbox', description: "The service's sandbox, whose data is not real." },
  { name: 'HR', value: 'hr', description: 'A payroll or human-resources provider.' },
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => ({
    name: `PREPARER_SOFTWARE_${n}`,
    value: `preparer_software_${n}`,
    description: `Placeholder for the tax-preparation product number ${n}; the gateway's operators can name it.`,
  })),
  {
    name: 'PROVIDER_9',
    value: 'provider_9',
    description: "Placeholder for one more tax-preparation provider; the gateway's operators can name it.",
  },
];

const filled = text.min(1, 'must not be empty');

const providersFile = z
  .array(
    z.strictObject({
      name: z
        .string()
        .regex(/^[A-Z][A-Z0-9_]*$/, 'must be an enum name such as IRS_TAX_PRO')
        .refine((name) => name !== 'UNRECOGNIZED', 'must not be UNRECOGNIZED, which is always there'),
      value: filled,
      description: filled,
    }),
  )
  .min(1, 'must have an entry')
  .refine((entries) => new Set(entries.map((e) => e.name)).size === entries.length, 'must not repeat a name')
  .refine((entries) => new Set(entries.map((e) => e.value)).size === entries.length, 'must not repeat a value');

/** The catalogue in the file, or else the built-in one. @throws Error with one line saying what is wrong with the file */
export function readProviders(file?: string): readonly ProviderEntry[] {
  if (file === undefined) return defaultProviders;
  let json: unknown;
  try {
    json = JSON.parse(withoutByteOrderMark(readFileSync(file, 'utf8')));
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error('PROVIDERS_FILE is not JSON');
    throw new Error(`PROVIDERS_FILE cannot be read (${codeOf(error)})`);
  }
  const parsed = providersFile.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue?.path.length ? `[${issue.path.join('.')}] ` : '';
  throw new Error(`PROVIDERS_FILE ${place}${issue?.message}`);
}

/** The enum as TypeGraphQL sees it, once {@link defineProviders} has made it. */
export let Provider: Readonly<Record<string, string>> = {};

/** Makes the `Provider` enum. Call it before the schema is built, whose types then ask for the enum. */
export function defineProviders(entries: readonly ProviderEntry[]): void {
  const description =
    'Where the tax data of a taxpayer comes from. The operators of a gateway may name other values (PROVIDERS_FILE): generate types from the schema of your gateway.';
  Provider = openEnum('Provider', description, {
    ...Object.fromEntries(entries.map((entry) => [entry.name, entry.description])),
    UNRECOGNIZED: 'A provider that the gateway does not know. `providerId` has the value of the service.',
  });
}
