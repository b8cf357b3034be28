// The only module that loads OpenTelemetry. The exporter reads the standard OTEL_... variables itself.
import { hostname } from 'node:os';
import {
  type Context,
  context,
  type Span as OtelSpan,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { parseTraceparent } from '../trace.ts';
import type { Span, SpanOptions, Telemetry } from './telemetry.ts';

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

export class OpenTelemetry implements Telemetry {
  readonly isOn = true;
  readonly #provider: NodeTracerProvider;
  readonly #tracer: Tracer;

  constructor({ version, role }: { version: string; role: string }) {
    const name = process.env['OTEL_SERVICE_NAME'] || 'undertone';
    this.#provider = new NodeTracerProvider({
      resource: resourceFromAttributes({
        'service.name': name,
        'service.version': version,
        'service.instance.id': `${hostname()}-${process.pid}`,
        'undertone.role': role,
      }),
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    });
    this.#provider.register();
    this.#tracer = this.#provider.getTracer('undertone', version);
  }

  start(name: string, { kind = 'internal', attributes = {}, parent }: SpanOptions = {}): Span {
    const active = contextOf(parent) ?? context.active();
    const span = this.#tracer.startSpan(name, { kind: KINDS[kind], attributes: { ...attributes } }, active);
    return new StartedSpan(this.#tracer, span, trace.setSpan(active, span));
  }

  async stop(): Promise<void> {
    // A collector that is unavailable must not keep the process from stopping.
    await this.#provider.shutdown().catch(() => undefined);
  }
}

class StartedSpan implements Span {
  readonly traceparent: string;
  readonly #tracer: Tracer;
  readonly #span: OtelSpan;
  readonly #context: Context;

  constructor(tracer: Tracer, span: OtelSpan, own: Context) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = own;
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  }

  run<T>(work: () => T): T {
    return context.with(this.#context, work);
  }

  addPast(name: string, ms: number, endedMsAgo = 0): void {
    const end = Date.now() - endedMsAgo;
    this.#tracer.startSpan(name, { startTime: end - ms }, this.#context).end(end);
  }

  end({ attributes = {}, failed = false }: Parameters<Span['end']>[0] = {}): void {
    this.#span.setAttributes({ ...attributes });
    if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}

function contextOf(traceparent: string | null | undefined): Context | undefined {
  const parent = parseTraceparent(traceparent);
  if (parent === null) return undefined;
  const { traceId, spanId, flags } = parent;
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(context.active(), remote);
}
