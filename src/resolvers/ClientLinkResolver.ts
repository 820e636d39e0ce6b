import { Arg, Directive, Mutation, Resolver } from 'type-graphql';
import type { RequestContext } from '../context/RequestContext.js';
import type { ClientLinkRequest } from '../datasources/wire.js';
import { isObject } from '../process/json.js';
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

/** The service's names of members that the schema names otherwise (interface, 2.2). */
const serviceNames: Readonly<Record<string, string>> = {
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
  return { ...(metadata && { metadata }), ...sent({ settings }) };
}

/** The members that have a value, in the service's words, and likewise theirs; undefined when none has. */
function sent(part: object): Record<string, unknown> | undefined {
  const members = Object.entries(part)
    .map(([name, value]) => [serviceNames[name] ?? name, isObject(value) ? sent(value) : value])
    .filter(([, value]) => value != null);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
