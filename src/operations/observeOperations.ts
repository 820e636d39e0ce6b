import {
  type DocumentNode,
  type FieldNode,
  type GraphQLFormattedError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type OperationTypeNode,
  type SelectionNode,
} from 'graphql';
import type { ErrorCode } from '../errors/errors.js';
import type { Trail } from '../observability/Trail.js';
import type { RequestFacts } from './OperationContext.js';

export const transports = ['http', 'ws', 'sse', 'multipart'] as const;
export type Transport = (typeof transports)[number];
/** The transports whose connection stays open. */
export type LiveTransport = Exclude<Transport, 'http'>;
export type RequestOutcome = 'ok' | 'errors' | 'refused';

/** Called when an operation begins. Returns the function to call when the operation is answered. */
export type OperationObserver = () => EndOfOperation;
export type EndOfOperation = (label: string, type: `${OperationTypeNode}` | 'none', errors: number) => void;

/** An operation that has ended, or a request that was refused before it became an operation. */
export interface EndedOperation {
  readonly facts: RequestFacts;
  readonly transport: Transport;
  readonly outcome: RequestOutcome;
  /** See {@link operationLabel}; absent when no operation was read. */
  readonly label?: string | undefined;
  readonly type?: `${OperationTypeNode}` | 'none' | undefined;
  readonly codes: readonly string[];
  /** Why it failed, in words that hold nothing a caller or the service sent. */
  readonly causes: readonly string[];
  readonly trail?: Trail;
  /** Number of answers; only for streams. */
  readonly events?: number;
}

/** Hooks through which metrics, traces and logs learn what the pipeline does. */
export interface OperationHooks {
  readonly observe: OperationObserver;
  readonly onRequest: (transport: Transport, outcome: RequestOutcome, errors: readonly GraphQLFormattedError[]) => void;
  readonly onExecution: (way: 'plan' | 'apollo') => void;
  readonly onError: (code: ErrorCode) => void;
  /** Called for an error that neither a caller nor the service caused. */
  readonly onBug: (error: unknown, requestId?: string) => void;
  /**
   * Called for operations that were refused, failed, changed something, called the token endpoint, or took at least
   * `logSlowerThanMs` milliseconds.
   */
  readonly onEnd: (ended: EndedOperation) => void;
  readonly logSlowerThanMs: number;
}

export function observeBoth(one: OperationObserver, other: OperationObserver | undefined): OperationObserver {
  if (other === undefined) return one;
  return () => {
    const [end, alsoEnd] = [one(), other()];
    return (label, type, errors) => {
      end(label, type, errors);
      alsoEnd(label, type, errors);
    };
  };
}

/**
 * The name of an operation in metrics and traces, never the name a client gave: its root field as the schema spells it,
 * `several`, or `none`. Of several fields, one that waits (`waitSeconds`) gives the name, because the operation is slow on
 * purpose.
 */
export function operationLabel(
  schema: GraphQLSchema,
  { operation, selectionSet }: OperationDefinitionNode,
  { definitions }: DocumentNode,
): string {
  const names = new Set(selectionSet.selections.map((one) => (one.kind === Kind.FIELD ? one.name.value : undefined)));
  const [name] = names;
  if (names.size !== 1 || name === undefined) {
    const fragments = definitions.filter((one) => one.kind === Kind.FRAGMENT_DEFINITION);
    const all = [selectionSet, ...fragments.map((one) => one.selectionSet)];
    return all.flatMap(({ selections }) => selections).find(isLongPoll)?.name.value ?? 'several';
  }
  if (name.startsWith('__')) return 'introspection';
  return schema.getRootType(operation)?.getFields()[name] === undefined ? 'none' : name;
}

function isLongPoll(selection: SelectionNode): selection is FieldNode {
  const given = selection.kind === Kind.FIELD ? selection.arguments : undefined;
  return given?.some(({ name }) => name.value === 'waitSeconds') ?? false;
}
