import { Type } from 'typebox';
import { TOKEN_SECONDS } from '../limits.ts';
import { TOKEN_SCOPES } from '../tokens.ts';

export const TokenScope = Type.Enum([...TOKEN_SCOPES], {
  type: 'string',
  title: 'TokenScope',
  description:
    'What the token may be used for: `discrete` short recordings, `stream` live audio, `all` everything except making tokens and reading the webhook secret.',
});

export const TokenBody = Type.Object(
  {
    expires_in: Type.Optional(
      Type.Integer({
        minimum: TOKEN_SECONDS.min,
        maximum: TOKEN_SECONDS.max,
        default: TOKEN_SECONDS.default,
        description: 'Seconds until the token expires.',
      }),
    ),
    scope: Type.Optional({ ...TokenScope, default: 'all' }),
  },
  { $id: 'TokenBody', description: 'The lifetime and the scope of a token.' },
);

export const TokenResult = Type.Object(
  {
    token: Type.String({ description: 'Send it where an API key goes.' }),
    expires_at: Type.String({ description: 'ISO 8601.' }),
    scope: TokenScope,
  },
  { $id: 'TokenResult', description: 'A token for browsers.' },
);
