import {
  type Serializer,
  type SerializerFactory,
  SerializerSelector,
} from '@fastify/fast-json-stringify-compiler';

const compile = SerializerSelector();
const known = new Map<string, Map<string, Serializer>>();

/**
 * Fastify's own serialisers of answers, but each compiled once. Fastify compiles one for every status of every route, most of
 * them the same ones for errors, which is most of the time that an app takes to start.
 */
export const buildSerializer: SerializerFactory = (sharedSchemas, options) => {
  const compiler = compile(sharedSchemas, options);
  const shared = JSON.stringify(sharedSchemas);
  const serializers = known.get(shared) ?? new Map<string, Serializer>();
  known.set(shared, serializers);
  return (route) => {
    const key = JSON.stringify(route.schema);
    const serializer = serializers.get(key) ?? compiler(route);
    serializers.set(key, serializer);
    return serializer;
  };
};
