import { NO_TELEMETRY, type Telemetry } from './telemetry.ts';

/** Loads OpenTelemetry if an endpoint is set. Its packages are optional: without them the server runs all the same. */
export async function openTelemetry(
  env: Readonly<Record<string, string | undefined>>,
  service: { readonly version: string; readonly role: string },
  onMissing: (error: unknown) => void,
): Promise<Telemetry> {
  if (!env['OTEL_EXPORTER_OTLP_ENDPOINT']) return NO_TELEMETRY;
  try {
    const { OpenTelemetry } = await import('./opentelemetry.ts');
    return new OpenTelemetry(service);
  } catch (error) {
    onMissing(error);
    return NO_TELEMETRY;
  }
}
