import {
  API_KEY_HEADER,
  KEY_PROTOCOL_PREFIX,
  PATHS,
  STREAM_LIMITS,
  STREAM_PROTOCOL,
} from '@undertone/contract';
import {
  StreamDone,
  StreamEnd,
  StreamError,
  StreamPrediction,
  StreamQuery,
  StreamReady,
} from '@undertone/contract/schemas';
import packageJson from '../../package.json' with { type: 'json' };
import { STREAM_OPERATION } from './describe.ts';

const FROM_SERVER = { StreamReady, StreamPrediction, StreamDone, StreamError };
const FROM_CLIENT = { StreamEnd };

const AUDIO = {
  name: 'audio',
  title: 'Audio',
  summary: 'Raw samples in a binary message, cut anywhere.',
  contentType: 'application/octet-stream',
  payload: { type: 'string', format: 'binary', maxLength: STREAM_LIMITS.maxMessageBytes },
};

/** The streaming interface as an AsyncAPI 3 document, made of the same schemas that the server uses. */
export function asyncApi(): object {
  const texts = Object.entries({ ...FROM_CLIENT, ...FROM_SERVER }).map(([name, schema]) => [
    name,
    {
      name: schema.properties.type.const,
      contentType: 'application/json',
      payload: plain(schema),
    },
  ]);
  const messageRefs = (names: string[]) =>
    names.map((name) => ({ $ref: `#/channels/stream/messages/${name}` }));
  const messages = Object.fromEntries([['Audio', AUDIO], ...texts]);
  return {
    asyncapi: '3.1.0',
    info: {
      title: 'Undertone: live audio',
      version: packageJson.version,
      description: STREAM_OPERATION.schema.description,
      tags: [{ name: 'Streaming', description: 'Live audio over WebSocket' }],
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    servers: {
      local: {
        host: '127.0.0.1:8080',
        protocol: 'ws',
        description: `The subprotocol is ${STREAM_PROTOCOL}.`,
        security: [
          { $ref: '#/components/securitySchemes/apiKey' },
          { $ref: '#/components/securitySchemes/bearer' },
        ],
      },
    },
    channels: {
      stream: {
        address: PATHS.stream,
        description: 'One conversation for each connection.',
        messages: Object.fromEntries(
          Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }]),
        ),
        bindings: { ws: { method: 'GET', query: plain(StreamQuery) } },
      },
    },
    operations: {
      listen: {
        action: 'receive',
        channel: { $ref: '#/channels/stream' },
        summary: 'What the server takes.',
        description: 'Audio in binary messages, then `end`.',
        messages: messageRefs(['Audio', ...Object.keys(FROM_CLIENT)]),
      },
      answer: {
        action: 'send',
        channel: { $ref: '#/channels/stream' },
        summary: 'What the server says.',
        description: '`ready` first, then predictions, at last `done` or `error`.',
        messages: messageRefs(Object.keys(FROM_SERVER)),
      },
    },
    components: {
      messages,
      securitySchemes: {
        apiKey: {
          type: 'httpApiKey',
          in: 'header',
          name: API_KEY_HEADER,
          description: `A key or a token. Browsers offer it as a subprotocol, ${KEY_PROTOCOL_PREFIX}<key>.`,
        },
        bearer: { type: 'http', scheme: 'bearer', description: 'A key or a token.' },
      },
    },
  };
}

/** As JSON has it: without the marks that the library puts on its schemas, and without a name to refer to. */
function plain(schema: object): object {
  const { $id: _, ...rest } = JSON.parse(JSON.stringify(schema));
  return rest;
}
