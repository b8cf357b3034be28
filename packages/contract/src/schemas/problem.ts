import { Type } from 'typebox';
import { ERROR_CODES } from '../errors.ts';

/** RFC 9457, with a code to branch on and, where they help to fix the request, figures. */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'Documentation of this kind of problem.' }),
    title: Type.String({ description: 'What went wrong; the same text for every problem with this code.' }),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    detail: Type.String({ description: 'What went wrong this time, and what to do next.' }),
    code: Type.Enum([...ERROR_CODES], {
      type: 'string',
      title: 'ErrorCode',
      description: 'The code to branch on.',
    }),
    request_id: Type.String({
      description: 'Same as the header `x-request-id`. Quote it when you ask for help.',
    }),
    min_seconds: Type.Optional(Type.Number()),
    max_seconds: Type.Optional(Type.Number()),
    actual_seconds: Type.Optional(Type.Number()),
    error: Type.Optional(
      Type.String({ description: 'For older clients: `detail`, if a duration is wrong.' }),
    ),
    error_code: Type.Optional(Type.String({ description: 'For older clients: `code` in upper case.' })),
    min_duration_seconds: Type.Optional(Type.Number({ description: 'For older clients: `min_seconds`.' })),
    max_duration_seconds: Type.Optional(Type.Number({ description: 'For older clients: `max_seconds`.' })),
    actual_duration_seconds: Type.Optional(
      Type.Number({ description: 'For older clients: `actual_seconds`.' }),
    ),
    limit: Type.Optional(Type.Number({ description: 'The limit that was reached.' })),
    used: Type.Optional(Type.Number({ description: 'How much of it is used.' })),
    limit_bytes: Type.Optional(Type.Integer()),
    used_bytes: Type.Optional(Type.Integer()),
    min_sample_rate: Type.Optional(Type.Number()),
    max_sample_rate: Type.Optional(Type.Number()),
    actual_sample_rate: Type.Optional(Type.Number()),
    max_channels: Type.Optional(Type.Integer()),
    actual_channels: Type.Optional(Type.Integer()),
    max_bytes: Type.Optional(Type.Integer()),
    retry_after_seconds: Type.Optional(Type.Integer()),
    missing_parts: Type.Optional(Type.Array(Type.Integer(), { description: 'Parts that never arrived.' })),
    wrong_parts: Type.Optional(
      Type.Array(Type.Integer(), { description: 'Parts whose ETag does not match what arrived.' }),
    ),
  },
  { $id: 'Problem', additionalProperties: true, description: 'Why a request was refused (RFC 9457).' },
);
