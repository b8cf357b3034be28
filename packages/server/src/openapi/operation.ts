import { ERRORS, type ErrorCode, PROBLEM_CONTENT_TYPE } from '@undertone/contract';
import { Problem } from '@undertone/contract/schemas';
import type { FastifyContextConfig, FastifySchema } from 'fastify';
import type { TSchema } from 'typebox';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Documents a body that the route reads itself, as a stream. */
    documentedBody?: object;
  }
}

/** The OpenAPI text of a route. Each feature keeps its own in `describe.ts`. */
export interface Operation {
  readonly config?: FastifyContextConfig;
  readonly schema: FastifySchema;
}

/** Errors that every operation with an API key can answer with. */
export const KEY_PROBLEMS = [
  'missing_api_key',
  'invalid_api_key',
  'rate_limited',
  'internal',
  'overloaded',
] as const;

/** Refers to a schema of the contract by its `$id`, so that generated clients have one class for it. */
export function ref(schema: TSchema) {
  const { $id } = schema as { $id?: string };
  if ($id === undefined) throw new Error('Only a schema with an $id can be referred to.');
  return { $ref: `${$id}#` };
}

export function json(schema: TSchema, description: string, example?: object) {
  const media = { schema: ref(schema), ...(example && { example }) };
  return { description, content: { 'application/json': media } };
}

/** The error responses of an operation, one entry per status. */
export function problems(...codes: ErrorCode[]) {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, problem(...group)]));
}

/** One error response, whatever status its codes have elsewhere. */
export function problem(...codes: ErrorCode[]) {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join('; '),
    content: { [PROBLEM_CONTENT_TYPE]: { schema: ref(Problem) } },
  };
}
