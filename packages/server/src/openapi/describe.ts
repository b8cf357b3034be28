import { ERRORS, type ErrorCode, PROBLEM_CONTENT_TYPE } from '@undertone/contract';
import type { FastifyContextConfig, FastifySchema } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A body that is described to readers but read by the route itself, as it arrives. */
    documentedBody?: object;
  }
}

/** How a route is described, apart from what it does. */
export interface Operation {
  readonly config?: FastifyContextConfig;
  readonly schema: FastifySchema;
}

/** An answer whose schema is one of the contract's, by its name. */
export function json(schemaId: string, description: string, example?: object) {
  const media = { schema: { $ref: `${schemaId}#` }, ...(example && { example }) };
  return { description, content: { 'application/json': media } };
}

/** The error answers an operation can give, one entry for each status. */
export function problems(...codes: ErrorCode[]) {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, problem(...group)]));
}

/** One error answer, whatever status its codes have elsewhere. */
export function problem(...codes: ErrorCode[]) {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join('; '),
    content: { [PROBLEM_CONTENT_TYPE]: { schema: { $ref: 'Problem#' } } },
  };
}
