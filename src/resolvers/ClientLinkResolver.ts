import { Arg, Directive, Mutation, Resolver } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import type { ClientLinkRequest } from '../datasources/wire.js';
import { ClientLink, CreateClientLinkInput, CreateClientLinkPayload } from '../schema/ClientLink.js';
import { Needs } from './decorators.js';

@Resolver(() => ClientLink)
export class ClientLinkResolver {
  @Needs('client-links:create')
  @Directive('@cost(weight: 10)')
  @Mutation(() => CreateClientLinkPayload, {
    description:
      'Creates a link to the hosted flow, in which a taxpayer gives consent and signs. Give an `idempotencyKey`, so that you can safely retry.',
  })
  async createClientLink(
    _root: unknown,
    @Arg('input', () => CreateClientLinkInput, { description: 'Key, metadata and settings of the link, all optional.' })
    { input }: { readonly input: CreateClientLinkInput },
    context: RequestContext,
  ): Promise<CreateClientLinkPayload> {
    const { link, replayed } = await context.createClientLink(requestOf(input), input.idempotencyKey ?? undefined);
    return { clientLink: link, replayed };
  }

  static readonly reference = undefined; // the service has no call that finds a link
}

/** The request in the service's words (interface, 2.2), with nothing in it that the caller did not send. */
function requestOf({ metadata, settings }: CreateClientLinkInput): ClientLinkRequest {
  const { flowType, transcripts, prefillData } = settings ?? {};
  const { personalInfo, businessInfo, address } = prefillData ?? {};
  const request = {
    metadata,
    settings: sent({
      flowType,
      transcripts: sent(transcripts, (name) => (name === 'form1095A' ? '1095-A' : name.toUpperCase())),
      prefillData: sent({ personalInfo: sent(personalInfo), businessInfo: sent(businessInfo), address: sent(address) }),
    }),
  };
  return sent(request) ?? {};
}

/** The members that have a value; undefined when none has. */
function sent(part: object | null | undefined, nameOf = (name: string) => name): Record<string, unknown> | undefined {
  const members = Object.entries(part ?? {}).filter(([, value]) => value != null);
  return members.length === 0 ? undefined : Object.fromEntries(members.map(([name, value]) => [nameOf(name), value]));
}
