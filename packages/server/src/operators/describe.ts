import { ModelList } from '@undertone/contract/schemas';
import { json, type Operation, problems } from '../openapi/operation.ts';

export const MODELS_OPERATION: Operation = {
  schema: {
    operationId: 'listModels',
    tags: ['Discrete'],
    summary: 'List the models',
    description: 'Their emotions, measured accuracy, and the licence of the weights in use.',
    response: {
      200: json(ModelList, 'The models'),
      ...problems('missing_api_key', 'invalid_api_key', 'rate_limited'),
    },
  },
};

const STATUS = (description: string, status: string) => ({
  description,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['status'],
        properties: { status: { type: 'string', const: status } },
      },
    },
  },
});

export const HEALTH_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'health',
    tags: ['Operations'],
    summary: 'Is the process alive?',
    description: 'For restarts: 200 while the process runs, whatever the state of its stores.',
    security: [],
    response: { 200: STATUS('The process is alive', 'ok') },
  },
};

export const READY_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'ready',
    tags: ['Operations'],
    summary: 'Can it accept requests?',
    description:
      '503 if no inference thread is running, the store is not writable, or the server is shutting down; `detail` says which.',
    security: [],
    response: { 200: STATUS('It can accept requests', 'ready'), ...problems('overloaded') },
  },
};

export const METRICS_OPERATION: Operation = {
  config: { withoutKey: true, probe: true },
  schema: {
    operationId: 'metrics',
    tags: ['Operations'],
    summary: 'Prometheus metrics',
    description: 'Counts and times of this process, in the text format of Prometheus.',
    security: [],
    response: {
      200: { description: 'The metrics', content: { 'text/plain': { schema: { type: 'string' } } } },
    },
  },
};
