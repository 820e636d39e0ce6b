import type { Admission } from '../admission/Admission.js';
import { type RequestLimits, refuseDeepNesting } from '../http/graphqlRequest.js';
import type { LiveRequest } from './LiveOperations.js';
import type { OperationFacts } from './OperationContext.js';
import { type TrustedDocuments, withDocument } from './trustedDocuments.js';

export interface AdmissionOptions {
  readonly rateLimit: Admission;
  /** The documents that may run; undefined for any. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly requestLimits: RequestLimits;
}

/**
 * What every operation of a stream passes before anything of it is looked at: counted, not nested too deeply, with a
 * document, and, where there is a list, a trusted one. Rejects with a GatewayError that says which of these it is.
 */
export function admission({ rateLimit, trustedDocuments, requestLimits }: AdmissionOptions) {
  return async (request: LiveRequest, { caller, remoteAddress, fromRouter }: OperationFacts): Promise<LiveRequest> => {
    await rateLimit.admit(caller, remoteAddress);
    refuseDeepNesting(request, requestLimits);
    return withDocument(request, fromRouter, trustedDocuments);
  };
}
