import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSerializer } from '../../src/http/serializers.ts';

const route = (schema: object) => ({ method: 'GET', url: '/', httpStatus: '200', schema });
const pet = (type: string) => ({ pet: { $id: 'pet', type: 'object', properties: { name: { type } } } });

test('equal schemas have one serialiser, which keeps what the schema names; shared schemas count', () => {
  const compile = buildSerializer(pet('string'), {});
  const serialize = compile(route({ $ref: 'pet#' }));
  assert.equal(serialize({ name: 'Rex', secret: 1 }), '{"name":"Rex"}');
  assert.equal(buildSerializer(pet('string'), {})(route({ $ref: 'pet#' })), serialize);
  assert.notEqual(compile(route({ type: 'array', items: { $ref: 'pet#' } })), serialize);
  assert.equal(buildSerializer(pet('number'), {})(route({ $ref: 'pet#' }))({ name: 7 }), '{"name":7}');
});
