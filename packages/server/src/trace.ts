// One trace through everything: the call that creates a request, its processing, its webhooks.
import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Trace } from './stores/contracts.ts';

/** W3C Trace Context, version 00: trace id, parent id, flags. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})$/;

/** What is kept with a request that this call creates. */
export function traceOf({ id, caller, headers }: FastifyRequest): Trace {
  const { traceparent } = headers;
  return {
    requestId: id,
    key: caller?.logId ?? null,
    traceparent: typeof traceparent === 'string' && TRACEPARENT.test(traceparent) ? traceparent : null,
  };
}

/** For log lines. */
export function traceFields(trace: Trace | null): Record<string, string | undefined> {
  if (trace === null) return {};
  return { request_id: trace.requestId, key: trace.key ?? undefined, trace_id: traceIdOf(trace.traceparent) };
}

export function traceIdOf(traceparent: string | null): string | undefined {
  return TRACEPARENT.exec(traceparent ?? '')?.[1];
}

/** The headers of a call that belongs to the trace, with a parent id of its own. */
export function outgoingTrace(trace: Trace | null): Record<string, string> {
  const [, traceId, flags] = TRACEPARENT.exec(trace?.traceparent ?? '') ?? [];
  if (traceId === undefined) return {};
  return { traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-${flags}` };
}
