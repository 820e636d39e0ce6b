import { Arg, Directive, ID, Int } from 'type-graphql';
import type { Scope, TaxpayerScope } from '../auth/caller.js';
import type { RequestContext } from '../context/RequestContext.js';
import { longestWaitSeconds, type TaxpayerAccess } from '../context/TaxpayerAccess.js';

/** The arguments of fields about a taxpayer. Each field has those that its decorators declare; parents have the same ids. */
export interface Arguments {
  readonly id: string;
  readonly taxpayerId: string;
  readonly jobId: string;
  readonly maxAgeSeconds?: number;
  readonly waitSeconds?: number;
}

type Method = (taxpayer: TaxpayerAccess, args: Arguments, parent: never) => unknown;

/**
 * A field about the taxpayer whom its argument `taxpayerId` names, or else its parent; a field without either has the argument
 * `id`. The method is called once the caller was found to have `scope` and access to the taxpayer.
 */
export function OfTaxpayer(scope: TaxpayerScope) {
  return <Declared extends Method>(
    prototype: object,
    name: string,
    method: TypedPropertyDescriptor<Declared>,
  ): void => {
    const use = method.value as Method;
    const resolve = (parent: Partial<Arguments> | undefined, args: Arguments, context: RequestContext) => {
      const known = args.taxpayerId ?? parent?.taxpayerId ?? parent?.id;
      const path = known === undefined ? 'id' : 'taxpayerId';
      return context.taxpayer(known ?? args.id, scope, (taxpayer) => use(taxpayer, args, parent as never), path);
    };
    Object.assign(method, { value: resolve });
    Needs(scope)(prototype, name, method);
  };
}

/** Publishes the scope that a field needs, so that routers can refuse callers without it, as `RequestContext` does. */
export function Needs(scope: Scope): MethodDecorator {
  return (prototype, name, method) => {
    // Applied in reverse: the schema prints the last one first.
    Directive(`@requiresScopes(scopes: [["${scope}"]])`)(prototype, name, method);
    Directive('@authenticated')(prototype, name, method);
  };
}

/** A field that is null only with an error that names it: a client that handles errors may take it as never null. */
export const NullOnlyWithError = Directive('@semanticNonNull');

const idOfTaxpayer = { description: "The taxpayer's id, assigned by the service." };

// The arguments of queries and fields. The input of the mutation stands with it.
export const IdArg = Arg('id', () => ID, idOfTaxpayer);
export const TaxpayerIdArg = Arg('taxpayerId', () => ID, idOfTaxpayer);
export const JobIdArg = Arg('jobId', () => ID, { description: "The job's id, assigned by the service." });
export const MaxAgeSeconds = Arg('maxAgeSeconds', () => Int, {
  nullable: true,
  description:
    'Maximum age of the cached record in seconds; less than 60 counts as 60. Omit it unless you need newer data.',
});
export const WaitSeconds = Arg('waitSeconds', () => Int, {
  nullable: true,
  description: `Long poll: wait up to this many seconds, at most ${longestWaitSeconds}, for the job to complete or fail. The answer comes as soon as it does, or at the end of that time with the status it has then.`,
});
