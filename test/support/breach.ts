import * as z from 'zod';
import { type Answer, errorAnswer } from '../../src/sandbox/answers.js';
import type { Received } from '../../src/sandbox/endpoints.js';

/** The only accepted Service-API-Version. */
const apiVersion = '2024-01-01';

const texts = (...names: string[]) => z.partialRecord(z.enum(names), z.string());
const clientLinkBody = z
  .strictObject({
    metadata: z.record(z.string(), z.unknown()),
    settings: z
      .strictObject({
        flowType: z.string(),
        transcripts: z.partialRecord(
          z.enum(['ACTR', 'RECA', 'WAID', 'VENF', 'W2', '1095-A', 'NOTICE']),
          z.array(z.string()),
        ),
        prefillData: z
          .strictObject({
            personalInfo: texts('firstName', 'lastName', 'ssn'),
            businessInfo: texts('name', 'taxId', 'type', 'phone', 'title'),
            address: texts('street', 'other', 'city', 'state', 'zip'),
          })
          .partial(),
      })
      .partial(),
  })
  .partial();

/** How the service refuses a request that is not as its interface says, whoever makes it; undefined for one that is. */
export function breachIn({ route: { endpoint }, request, body }: Received): Answer | undefined {
  if (endpoint === 'unknown' || endpoint === 'hostedPage') return undefined;
  const { 'content-type': type = '', 'service-api-version': version = apiVersion } = request.headers;
  const isAsAgreed =
    endpoint === 'createClientLink'
      ? /^application\/json *(;|$)/i.test(type) && clientLinkBody.safeParse(JSON.parse(body)).success
      : version === apiVersion && body === '';
  if (isAsAgreed && !request.url?.includes('?')) return undefined;
  return errorAnswer(422, `The interface has no such request: ${type} ${version} ${body}`);
}
