import { TOKEN_SECONDS } from '@undertone/contract';
import { TokenBody, TokenResult } from '@undertone/contract/schemas';
import { json, KEY_PROBLEMS, type Operation, problems, ref } from '../openapi/operation.ts';

const DESCRIPTION = [
  `Your server calls this with its API key and hands the token to a browser, which sends it wherever a key goes: \`x-api-key\`, \`Authorization: Bearer\`, the subprotocol \`apikey.<token>\` of a WebSocket. It lasts ${TOKEN_SECONDS.min} to ${TOKEN_SECONDS.max} seconds, ${TOKEN_SECONDS.default} by default.`,
  'A token belongs to its key: it has the same owner and the same limits, and is refused within a minute after its key is revoked or expires. Paths outside its scope answer 403 `forbidden`. No token can make tokens or read the webhook secret.',
  'A stream opened with a token ends when its key is revoked or expires. It does not end when the token expires.',
].join('\n\n');

export const MAKE_TOKEN: Operation = {
  config: {
    tokenScope: 'none',
    documentedBody: { required: false, content: { 'application/json': { schema: ref(TokenBody) } } },
  },
  schema: {
    operationId: 'makeToken',
    tags: ['Tokens'],
    summary: 'Make a token for a browser',
    description: DESCRIPTION,
    response: {
      200: json(TokenResult, 'The token'),
      ...problems('bad_request', 'forbidden', ...KEY_PROBLEMS),
    },
  },
};
