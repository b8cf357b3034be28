// Spans for OpenTelemetry. Without OTEL_EXPORTER_OTLP_ENDPOINT nothing of it is loaded, and every span is empty.

/** No value is ever text that a caller sent. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

export interface SpanOptions {
  readonly kind?: 'server' | 'client' | 'internal';
  readonly attributes?: Attributes;
  /** W3C Trace Context of the parent, from another process. By default the span that is running now. */
  readonly parent?: string | null | undefined;
}

export interface Span {
  /** W3C Trace Context of this span, for what it causes in other processes. Null if there are no spans. */
  readonly traceparent: string | null;
  /** Spans that begin in `work` are children of this one. */
  run<T>(work: () => T): T;
  /** A child that lies in the past: it ended now, after this many milliseconds. */
  addPast(name: string, ms: number, endedMsAgo?: number): void;
  end(options?: { attributes?: Attributes; failed?: boolean }): void;
}

export interface Telemetry {
  readonly isOn: boolean;
  start(name: string, options?: SpanOptions): Span;
  /** Sends what is left. */
  stop(): Promise<void>;
}

const NO_SPAN: Span = {
  traceparent: null,
  run: (work) => work(),
  addPast: () => undefined,
  end: () => undefined,
};

export const NO_TELEMETRY: Telemetry = { isOn: false, start: () => NO_SPAN, stop: async () => undefined };

/** A span around the work. */
export async function withSpan<T>(
  telemetry: Telemetry,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = telemetry.start(name, options);
  try {
    const value = await span.run(() => work(span));
    span.end();
    return value;
  } catch (error) {
    span.end({ failed: true });
    throw error;
  }
}
