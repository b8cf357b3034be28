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

const STATUS = (description: string, status: string, more: Record<string, unknown> = {}) => ({
  description,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['status', ...Object.keys(more)],
        properties: { status: { type: 'string', const: status }, ...more },
      },
    },
  },
});

const STORE = (description: string) => ({
  type: 'object',
  description,
  required: ['up'],
  properties: {
    up: { type: 'boolean', description: 'It can be written.' },
    reason: { type: 'string', description: 'Why not.' },
  },
});

const STORES = {
  stores: {
    type: 'object',
    required: ['database', 'recordings'],
    properties: {
      database: STORE('Keys, requests and results.'),
      recordings: STORE('Recordings that wait for a worker.'),
    },
  },
};

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
      '503 if no inference thread is running, the server is shutting down, or no key can be checked; `detail` says which. A store that cannot be written is reported in `stores`: only the calls that need it get a 503.',
    security: [],
    response: { 200: STATUS('It can accept requests', 'ready', STORES), ...problems('overloaded') },
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
