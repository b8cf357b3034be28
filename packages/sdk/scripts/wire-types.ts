import { EMOTIONS, MODEL_IDS, REQUEST_STATES } from '@undertone/contract';
import * as schemas from '@undertone/contract/schemas';

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[] | undefined;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

const objects = Object.entries(schemas as Record<string, Schema>).filter(([, { properties }]) => properties);

/** The client has its own versions of these, which keep the names for themselves. */
const EXTENDED = ['DiscreteResult', 'Problem', 'StreamPrediction'];

const enums = { Emotion: EMOTIONS, ModelId: MODEL_IDS, RequestState: REQUEST_STATES };

const names = new Map([
  ...Object.entries(enums).map(([name, values]) => [JSON.stringify(values), name] as const),
  ...objects.map(([name, schema]) => [shapeOf(schema), name] as const),
]);

/**
 * A module that replaces the contract's: its object types are interfaces that do not need TypeBox, with the
 * descriptions of the schemas as comments.
 */
export function wireTypes(contract: string): string {
  const from = `from ${JSON.stringify(contract)};\n`;
  const interfaces = objects.map(([name, schema]) => {
    const declaration = (as: string) => `${comment(schema)}export interface ${as} ${fields(schema)}\n`;
    return EXTENDED.includes(name)
      ? `${declaration(`Wire${name}`)}export type { Wire${name} as ${name} };\n`
      : declaration(name);
  });
  return `export * ${from}import type { ${Object.keys(enums)} } ${from}${interfaces.join('')}`;
}

function typeOf(schema: Schema): string {
  const name = names.get(shapeOf(schema) ?? '');
  if (name) return name;
  if (schema.enum) return schema.enum.map((value) => `'${value}'`).join(' | ');
  if (schema.const) return `'${schema.const}'`;
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ');
  if (schema.items) return `Array<${typeOf(schema.items)}>`;
  if (schema.properties) return fields(schema);
  const [values] = Object.values(schema.patternProperties ?? {});
  if (values) return `Record<string, ${typeOf(values)}>`;
  return schema.type === 'integer' ? 'number' : `${schema.type}`;
}

function fields({ properties = {}, required = [] }: Schema): string {
  const lines = Object.entries(properties).map(
    ([name, schema]) =>
      `${comment(schema)}${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema)};\n`,
  );
  return `{\n${lines.join('')}}`;
}

function comment({ description }: Schema): string {
  return description ? `/** ${description} */\n` : '';
}

/** Equal for a schema and its copies: TypeBox copies a schema to make it optional or to change its description. */
function shapeOf(schema: Schema): string | undefined {
  return JSON.stringify(schema.properties ?? schema.enum);
}
