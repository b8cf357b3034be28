import { KEY_PROTOCOL_PREFIX, STREAM_LIMITS, STREAM_PROTOCOL } from '@undertone/contract';
import { KEY_PROBLEMS, type Operation, problems } from '../openapi/operation.ts';

const { windowSeconds, firstSeconds, idleSeconds, lagSeconds, maxMessageBytes } = STREAM_LIMITS;

const DESCRIPTION = [
  `Upgrades to a WebSocket. Browsers, which cannot set headers on one, offer two subprotocols: \`${STREAM_PROTOCOL}\` and \`${KEY_PROTOCOL_PREFIX}<key>\`.`,
  `Binary messages from the client are audio: raw samples in pieces of any length, up to ${maxMessageBytes / 2 ** 20} MiB each. The text message \`{"type": "end"}\` ends the stream.`,
  `The server sends JSON: \`ready\` first; a \`prediction\` over the last ${windowSeconds} seconds of each channel when there are ${windowSeconds} seconds (${firstSeconds} with a shorter \`interval\`) and then after every \`interval\`; \`done\` after \`end\`; \`error\` before any other close. \`docs/asyncapi.yaml\` describes them.`,
  `While the server is too busy to classify more live audio in time, the upgrade is refused with 503. Audio sent faster than it can be classified is read more slowly (backpressure). A stream without audio for ${idleSeconds} seconds is closed with 4408. When a prediction takes ${lagSeconds} seconds, the stream is closed with 1013 (\`overloaded\`), when the server stops with 1012 (\`going_away\`), when its key is revoked with 1008 (\`invalid_api_key\`). A stream counts as one request. The audio is never stored.`,
].join('\n\n');

export const STREAM_OPERATION: Operation = {
  config: { tokenScope: 'stream', webSocket: true },
  schema: {
    operationId: 'stream',
    tags: ['Streaming'],
    summary: 'Classify live audio',
    description: DESCRIPTION,
    response: {
      101: { description: 'Switching to WebSocket', type: 'null' },
      ...problems('bad_request', 'unknown_model', ...KEY_PROBLEMS),
    },
  },
};
