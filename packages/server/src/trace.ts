// One trace through everything: the call that creates a request, its processing, its webhooks.
import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Trace } from './stores/contracts.ts';
import type { Span } from './telemetry/telemetry.ts';

/** W3C Trace Context, version 00: trace id, parent id, flags. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

export function parseTraceparent(
  traceparent: unknown,
): { traceId: string; spanId: string; flags: string } | null {
  if (typeof traceparent !== 'string') return null;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, flags };
}

/** What is kept with a request that this call creates. */
export function traceOf({ id, caller, span, headers: { traceparent } }: FastifyRequest): Trace {
  const given = parseTraceparent(traceparent) === null ? null : (traceparent as string);
  return { requestId: id, key: caller?.logId ?? null, traceparent: span?.traceparent ?? given };
}

/** For log lines. */
export function traceFields(trace: Trace | null): Record<string, string | undefined> {
  if (trace === null) return {};
  return { request_id: trace.requestId, key: trace.key ?? undefined, trace_id: traceIdOf(trace.traceparent) };
}

export function traceIdOf(traceparent: unknown): string | undefined {
  return parseTraceparent(traceparent)?.traceId;
}

/** The headers of a call that belongs to the trace: with its own span, or at least a parent id of its own. */
export function outgoingTrace(trace: Trace | null, span: Span): Record<string, string> {
  if (span.traceparent !== null) return { traceparent: span.traceparent };
  const parent = parseTraceparent(trace?.traceparent);
  if (parent === null) return {};
  return { traceparent: `00-${parent.traceId}-${randomBytes(8).toString('hex')}-${parent.flags}` };
}
