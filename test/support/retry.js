// These tests run real processes, sockets and stores on whatever machine there is, beside each other. One that fails is run
// once more, with its first failure printed: a busy machine then does not fail a run, and a broken promise still does.

import { jest } from '@jest/globals';

jest.retryTimes(1, { logErrorsBeforeRetry: true });
