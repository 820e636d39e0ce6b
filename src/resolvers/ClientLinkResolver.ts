import { Arg, Ctx, Mutation, Resolver } from 'type-graphql';
import type { RequestContext } from '../context.js';
import type { ClientLinkRequest, TranscriptKey } from '../datasources/wire.js';
import { badInput } from '../errors/errors.js';
import {
  ClientLink,
  CreateClientLinkInput,
  CreateClientLinkPayload,
  type TranscriptsInput,
} from '../schema/ClientLink.js';
import { Needs } from './decorators.js';

@Resolver(() => ClientLink)
export class ClientLinkResolver {
  @Needs('client-links:create')
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

  reference(): never {
    throw badInput('representations.__typename', 'names an entity that cannot be looked up');
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
  const { flowType, transcripts, prefillData } = settings ?? {};
  const { personalInfo, businessInfo, address } = prefillData ?? {};
  const request = {
    metadata,
    settings: sent({
      flowType,
      transcripts: sent(transcripts, transcriptKeys),
      prefillData: sent({ personalInfo: sent(personalInfo), businessInfo: sent(businessInfo), address: sent(address) }),
    }),
  };
  return sent(request) ?? {};
}

/** The members that have a value, under the service's names; nothing at all when none has. */
function sent(
  part: object | null | undefined,
  serviceNames: Readonly<Record<string, string>> = {},
): Record<string, unknown> | undefined {
  const members = Object.entries(part ?? {}).flatMap(([name, value]) =>
    value == null ? [] : [[serviceNames[name] ?? name, value] as const],
  );
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
