/** One line of CSV; text that would be read as something else is quoted. */
export function csvLine(values: readonly unknown[]): string {
  return values.map(field).join(',');
}

/** The first field of every line but the first, which is the header. */
export function firstFields(csv: string): string[] {
  const lines = csv.matchAll(/^(?:"((?:[^"]|"")*)"|([^",\n]*))(?:,[^\n]*)?$/gm);
  return [...lines].slice(1).map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
}

function field(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
