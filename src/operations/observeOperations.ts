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

export const transports = ['http', 'ws', 'sse', 'multipart', 'callback'] as const;
export type Transport = (typeof transports)[number];
/** Those whose connection stays open. */
export type LiveTransport = Exclude<Transport, 'http'>;
export type RequestOutcome = 'ok' | 'errors' | 'refused';

/** Called when an operation begins; what it returns is called when the operation is answered. */
export type OperationObserver = () => EndOfOperation;
export type EndOfOperation = (label: string, type: `${OperationTypeNode}` | 'none', errors: number) => void;

/** An operation that has ended, or a request that became none. */
export interface EndedOperation {
  readonly facts: RequestFacts;
  readonly transport: Transport;
  readonly outcome: RequestOutcome;
  /** As for metrics; absent when no operation was read. */
  readonly label?: string | undefined;
  readonly type?: `${OperationTypeNode}` | 'none' | undefined;
  /** What its document uses of what the schema deprecates, as schema coordinates. */
  readonly deprecated?: readonly string[] | undefined;
  readonly codes: readonly string[];
  /** Why it failed, in words that hold nothing of what was sent. */
  readonly causes: readonly string[];
  readonly trail?: Trail;
  /** Answers given; of streams alone. */
  readonly events?: number;
}

/** Whoever counts, times and logs what the pipeline does. */
export interface OperationHooks {
  readonly observe: OperationObserver;
  /** `startedAt` (of `performance.now()`) is undefined for what stays open. */
  readonly onRequest: (
    transport: Transport,
    outcome: RequestOutcome,
    startedAt: number | undefined,
    errors: readonly GraphQLFormattedError[],
  ) => void;
  readonly onExecution: (way: 'plan' | 'apollo') => void;
  readonly onError: (code: ErrorCode) => void;
  /** An error that nothing a caller or the service did can explain. */
  readonly onBug: (error: unknown, requestId?: string) => void;
  /** Called for operations that were refused, failed, changed something, or took at least `logSlowerThanMs` milliseconds. */
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
 * The name of an operation in metrics and traces: its root field as the schema spells it, `several`, or `none`; that of the
 * field that waits for something to happen, where one does, because such an operation is slow on purpose. Never the name a
 * client gave.
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
