import { Arg, Authorized, Ctx, Directive, Mutation, Resolver } from 'type-graphql';
import type { RequestContext } from '../context.js';
import type { ClientLinkRequest, TranscriptKey } from '../datasources/wire.js';
import { ClientLink, CreateClientLinkPayload } from '../schema/ClientLink.js';
import { CreateClientLinkInput, type TranscriptsInput } from '../schema/CreateClientLinkInput.js';

@Resolver(() => ClientLink)
export class ClientLinkResolver {
  @Authorized('client-links:create')
  @Directive('@authenticated')
  @Directive('@requiresScopes(scopes: [["client-links:create"]])')
  @Mutation(() => CreateClientLinkPayload, {
    description:
      'Creates a link that sends a taxpayer to the hosted flow. Give an idempotencyKey to be able to try again.',
  })
  async createClientLink(
    @Arg('input', () => CreateClientLinkInput, { description: 'What to create the link with.' })
    input: CreateClientLinkInput,
    @Ctx() context: RequestContext,
  ): Promise<CreateClientLinkPayload> {
    const { link, replayed } = await context.createClientLink(requestOf(input), input.idempotencyKey ?? undefined);
    return { clientLink: link, replayed };
  }
}

/** The service's names of the transcripts (interface, 2.2), which are not all GraphQL names. */
const transcriptKeys: Readonly<Record<keyof TranscriptsInput, TranscriptKey>> = {
  actr: 'ACTR',
  reca: 'RECA',
  waid: 'WAID',
  venf: 'VENF',
  w2: 'W2',
  form1095A: '1095-A',
  notice: 'NOTICE',
};

/** The request in the service's words, with nothing in it that the caller did not send. */
function requestOf({ metadata, settings }: CreateClientLinkInput): ClientLinkRequest {
  return {
    ...(metadata != null && { metadata }),
    ...given('settings', {
      ...given('flowType', settings?.flowType),
      ...given('transcripts', renamed(settings?.transcripts)),
      ...given('prefillData', {
        ...given('personalInfo', sent(settings?.prefillData?.personalInfo)),
        ...given('businessInfo', sent(settings?.prefillData?.businessInfo)),
        ...given('address', sent(settings?.prefillData?.address)),
      }),
    }),
  };
}

/** `{ [name]: value }`, or nothing at all when there is no value or an object without members. */
function given<Name extends string, Value>(name: Name, value: Value | null | undefined): { [N in Name]?: Value } {
  if (value == null) return {};
  if (typeof value === 'object' && Object.keys(value).length === 0) return {};
  return { [name]: value } as { [N in Name]?: Value };
}

function sent<T extends object>(part: T | null | undefined): Record<string, string> {
  const present: Record<string, string> = {};
  for (const [name, text] of Object.entries(part ?? {})) if (text != null) present[name] = text as string;
  return present;
}

function renamed(transcripts: TranscriptsInput | null | undefined): Partial<Record<TranscriptKey, readonly string[]>> {
  const present: Partial<Record<TranscriptKey, readonly string[]>> = {};
  for (const [name, items] of Object.entries(transcripts ?? {})) {
    if (items != null) present[transcriptKeys[name as keyof TranscriptsInput]] = items;
  }
  return present;
}
