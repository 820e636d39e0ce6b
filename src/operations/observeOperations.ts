import type { ApolloServerPlugin } from '@apollo/server';
import type { OperationTypeNode } from 'graphql';
import type { OperationContext } from './OperationContext.js';
import { operationLabel } from './operationLabel.js';

/** Called when an operation begins; what it returns is called when the operation is answered. */
export type OperationObserver = () => (label: string, type: `${OperationTypeNode}` | 'none', errors: number) => void;

/** Several observers as one. */
export function observeAll(observers: readonly OperationObserver[]): OperationObserver {
  const [only] = observers;
  if (observers.length === 1 && only !== undefined) return only;
  return () => {
    const ends = observers.map((begin) => begin());
    return (...outcome) => {
      for (const end of ends) end(...outcome);
    };
  };
}

/** Has operations that Apollo executes observed. */
export function observedByApollo(observe: OperationObserver): ApolloServerPlugin<OperationContext> {
  return {
    async requestDidStart() {
      const end = observe();
      return {
        async willSendResponse({ schema, operation, errors }) {
          end(operationLabel(schema, operation), operation?.operation ?? 'none', errors?.length ?? 0);
        },
      };
    },
  };
}
