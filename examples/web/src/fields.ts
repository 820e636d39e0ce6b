import type { CreateClientLinkInput } from 'taxpayer-gateway-client';

export interface FieldGroup {
  readonly key: 'personalInfo' | 'businessInfo' | 'address';
  readonly legend: string;
  readonly fields: readonly { readonly name: string; readonly label: string }[];
}

/** Everything that can be prefilled. */
export const groups: readonly FieldGroup[] = [
  {
    key: 'personalInfo',
    legend: 'Person',
    fields: [
      { name: 'firstName', label: 'First name' },
      { name: 'lastName', label: 'Last name' },
      { name: 'ssn', label: 'Social security number' },
    ],
  },
  {
    key: 'businessInfo',
    legend: 'Business',
    fields: [
      { name: 'name', label: 'Business name' },
      { name: 'taxId', label: 'Tax id' },
      { name: 'type', label: 'Kind of business' },
      { name: 'phone', label: 'Phone' },
      { name: 'title', label: 'Title of the signer' },
    ],
  },
  {
    key: 'address',
    legend: 'Address',
    fields: [
      { name: 'street', label: 'Street' },
      { name: 'other', label: 'Further line' },
      { name: 'city', label: 'City' },
      { name: 'state', label: 'State' },
      { name: 'zip', label: 'ZIP code' },
    ],
  },
];

export const transcripts = [
  { name: 'actr', label: 'ACTR' },
  { name: 'reca', label: 'RECA' },
  { name: 'waid', label: 'WAID' },
  { name: 'venf', label: 'VENF' },
  { name: 'w2', label: 'W2' },
  { name: 'form1095A', label: '1095-A' },
  { name: 'notice', label: 'NOTICE' },
] as const;

/** What was filled in, as the gateway takes it; what was left empty is left out. */
export function inputOf(form: FormData, idempotencyKey: string): CreateClientLinkInput {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const prefillData = Object.fromEntries(
    groups.flatMap(({ key, fields }) => {
      const filled = fields.flatMap(({ name }) => {
        const value = text(`${key}.${name}`);
        return value === '' ? [] : [[name, value]];
      });
      return filled.length === 0 ? [] : [[key, Object.fromEntries(filled)]];
    }),
  );
  const asked = Object.fromEntries(
    transcripts.flatMap(({ name }) => {
      const items = text(`transcripts.${name}`)
        .split(/[\s,]+/)
        .filter(Boolean);
      return items.length === 0 ? [] : [[name, items]];
    }),
  );
  const reference = text('reference');
  const flowType = text('flowType');
  const settings = {
    ...(flowType !== '' && { flowType }),
    ...(Object.keys(asked).length > 0 && { transcripts: asked }),
    ...(Object.keys(prefillData).length > 0 && { prefillData }),
  };
  return {
    idempotencyKey,
    ...(reference !== '' && { metadata: { reference } }),
    ...(Object.keys(settings).length > 0 && { settings }),
  };
}
