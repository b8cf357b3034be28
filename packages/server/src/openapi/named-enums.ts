/** Words for values that are no identifiers; generators would call them VALUE_0, VALUE_1, ... */
const DIGITS: Record<string, string> = { 4: 'FOUR', 5: 'FIVE', 7: 'SEVEN' };

/**
 * Turns each enum with a title into a schema of that name and refers to it, so that generated clients have one type with a
 * readable name instead of one for every place that uses it.
 */
export function nameEnums<Document extends object>(document: Document): Document {
  const named: Record<string, object> = {};
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    if (!('enum' in node && 'title' in node))
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    const { title, default: preset, ...schema } = node as { title: string; default?: string; enum: string[] };
    named[title] ??= { title, ...schema, ...namesOf(schema.enum) };
    const $ref = `#/components/schemas/${title}`;
    // Not every generator reads what is beside a reference.
    return preset === undefined ? { $ref } : { allOf: [{ $ref }], default: preset };
  };
  const { components, ...rest } = visit(document) as { components: { schemas: object } };
  return { ...rest, components: { ...components, schemas: { ...components.schemas, ...named } } } as Document;
}

function namesOf(values: readonly string[]): object {
  if (!values.some((value) => /^\d/.test(value))) return {};
  const name = (value: string) => value.replace(/^\d/, (digit) => `${DIGITS[digit] ?? digit}_`).toUpperCase();
  return { 'x-enum-varnames': values.map(name) };
}
