import { API_KEY_HEADER, DEFAULT_URL } from '@undertone/contract';

/** What a caller needs to know of an operation. */
interface Callable {
  readonly operationId?: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
}

type Samples = Record<'curl' | 'TypeScript' | 'Python', string>;

/** Placeholders for values that only the caller knows. */
const VALUES: Record<string, string> = {
  file_name: 'talk.wav',
  part_count: '1',
  part_number: '1',
  request_id: 'REQUEST_ID',
  expires: 'EXPIRES',
  signature: 'SIGNATURE',
};

const COMPLETE =
  '{"request_id": "REQUEST_ID", "upload_id": "UPLOAD_ID", "parts": [{"PartNumber": 1, "ETag": "\\"MD5\\""}]}';

/** Bodies in JSON by operation. */
const JSON_BODIES: Record<string, string> = {
  completeUpload: COMPLETE,
  completeUploadEmotion: COMPLETE,
  makeToken: '{"expires_in": 600, "scope": "stream"}',
};

/** Calls of our own clients, which are shorter than raw HTTP. */
const CLIENT_CALLS: Record<string, { readonly ts: string; readonly python: string }> = {
  classifyClip: {
    ts: "discrete.emotions('voice.wav')",
    python: 'discrete.emotions("voice.wav")',
  },
  listModels: { ts: 'models()', python: 'models()' },
  sendRecording: { ts: "asynch.classify('talk.wav')", python: 'asynch.classify("talk.wav")' },
  initiateUpload: { ts: "asynch.upload('talk.wav')", python: 'asynch.upload("talk.wav")' },
  getPrediction: {
    ts: "asynch.emotions('REQUEST_ID')",
    python: 'asynch.emotions("REQUEST_ID")',
  },
  deleteRequest: { ts: "asynch.delete('REQUEST_ID')", python: 'asynch.delete("REQUEST_ID")' },
};

const STREAM: Samples = {
  curl: '# For WebSocket, use the command line instead of curl:\nnpx undertone listen talk.wav',
  TypeScript: `import { createReadStream } from 'node:fs';
import { EmotionClient } from '@undertone/sdk';

const samples = createReadStream('talk.wav', { start: 44 }); // or a call, or a microphone: 16-bit, mono
const stream = new EmotionClient().stream({ sampleRate: 16_000 });
for await (const { t, main_emotion, confidence } of stream.feed(samples)) console.log(t, main_emotion, confidence);`,
  Python: `import wave
from undertone_client import EmotionClient

with wave.open("talk.wav") as recording, EmotionClient().stream(sample_rate=16_000) as stream:
    samples = iter(lambda: recording.readframes(1_600), b"")  # or a call, or a microphone: 16-bit, mono
    for prediction in stream.feed(samples):
        print(prediction.t, prediction.main_emotion, prediction.confidence)`,
};

export function samplesOf(method: string, path: string, operation: Callable): Samples {
  if (operation.operationId === 'stream') return STREAM;
  const { parameters = [], operationId = '' } = operation;
  const value = (name: string) => VALUES[name] ?? name.toUpperCase();
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => value(name));
  const query = parameters
    .filter(({ in: place, required }) => place === 'query' && required)
    .map(({ name }) => `${name}=${value(name)}`)
    .join('&');
  const url = `${DEFAULT_URL}${filled}${query && `?${query}`}`;
  const body = bodyOf(operation);
  const needsKey = operation.security?.length !== 0;
  const call = CLIENT_CALLS[operationId];
  const request = {
    method: method.toUpperCase(),
    url,
    body,
    text: JSON_BODIES[operationId] ?? '{}',
    needsKey,
  };
  return {
    curl: curlOf(request),
    TypeScript: call
      ? `import { EmotionClient } from '@undertone/sdk';\n\nconsole.log(await new EmotionClient().${call.ts});`
      : fetchOf(request),
    Python: call
      ? `from undertone_client import EmotionClient\n\nprint(EmotionClient().${call.python})`
      : urllibOf(request),
  };
}

type Body = 'form' | 'file' | 'json' | 'none';

interface Request {
  readonly method: string;
  readonly url: string;
  readonly body: Body;
  /** The JSON, if it is that. */
  readonly text: string;
  readonly needsKey: boolean;
}

function bodyOf({ requestBody }: Callable): Body {
  const types = Object.keys(requestBody?.content ?? {});
  if (types.includes('multipart/form-data')) return 'form';
  if (types.some((type) => /octet-stream|audio/.test(type))) return 'file';
  return types.length > 0 ? 'json' : 'none';
}

function curlOf({ method, url, body, text, needsKey }: Request): string {
  const usual = { none: 'GET', file: 'PUT', form: 'POST', json: 'POST' }[body];
  return [
    'curl',
    method !== usual && `-X ${method}`,
    needsKey && `-H "${API_KEY_HEADER}: $SERVICE_API_KEY"`,
    body === 'form' && '-F file=@voice.wav',
    body === 'file' && '-T talk.wav',
    body === 'json' && `--json '${text}'`,
    `'${url}'`,
  ]
    .filter(Boolean)
    .join(' ');
}

function fetchOf({ method, url, body, text, needsKey }: Request): string {
  const key = needsKey ? [`'${API_KEY_HEADER}': process.env.SERVICE_API_KEY`] : [];
  const headers = body === 'json' ? [...key, `'content-type': 'application/json'`] : key;
  const options = [
    `method: '${method}'`,
    headers.length > 0 && `headers: { ${headers.join(', ')} }`,
    body === 'form' && 'body: form',
    body === 'file' && "body: await openAsBlob('talk.wav')",
    body === 'json' && `body: JSON.stringify(${text})`,
  ].filter(Boolean);
  const opening = body === 'none' || body === 'json' ? '' : "import { openAsBlob } from 'node:fs';\n\n";
  const form =
    "const form = new FormData();\nform.append('file', await openAsBlob('voice.wav'), 'voice.wav');\n";
  return `${opening}${body === 'form' ? form : ''}const answer = await fetch('${url}', {\n  ${options.join(',\n  ')},\n});\nconsole.log(answer.status, await answer.text());`;
}

function urllibOf({ method, url, body, text, needsKey }: Request): string {
  if (body === 'form') {
    return `import os, httpx\n\nheaders = {"${API_KEY_HEADER}": os.environ["SERVICE_API_KEY"]}\nprint(httpx.post("${url}", headers=headers, files={"file": open("voice.wav", "rb")}).raise_for_status().json())`;
  }
  const key = needsKey ? [`"${API_KEY_HEADER}": os.environ["SERVICE_API_KEY"]`] : [];
  const headers = body === 'json' ? [...key, '"content-type": "application/json"'] : key;
  const data = { none: 'None', form: 'None', file: 'open("talk.wav", "rb").read()', json: `rb'${text}'` }[
    body
  ];
  return `import os, urllib.request\n\nrequest = urllib.request.Request(\n    "${url}", data=${data}, method="${method}", headers={${headers.join(', ')}}\n)\nprint(urllib.request.urlopen(request).read().decode())`;
}

/** Uploading a long recording, as commands that can be pasted one after another. */
export const UPLOAD_WALK: readonly (readonly [what: string, command: string])[] = [
  [
    'Start the upload. The response has the request_id and a URL for each part.',
    `begun=$(curl --silent -X POST -H "x-api-key: $SERVICE_API_KEY" '${DEFAULT_URL}/v1/asynch/upload/initiate?file_name=talk.wav&part_count=1')
field() { node -p "JSON.parse(process.argv[1]).$1" "$begun"; }`,
  ],
  [
    'Upload each part to its URL; no key is needed. Keep the ETag of the response.',
    `etag=$(curl --silent --fail -T talk.wav --dump-header - --output /dev/null "$(field 'presigned_urls[0].url')" | tr -d '\\r' | sed -n 's/^etag: //Ip')`,
  ],
  [
    'Complete the upload: list the parts.',
    `curl --silent -H "x-api-key: $SERVICE_API_KEY" -H 'content-type: application/json' ${DEFAULT_URL}/v1/asynch/upload/complete \\
  --data "{\\"request_id\\": \\"$(field request_id)\\", \\"upload_id\\": \\"$(field upload_id)\\", \\"parts\\": [{\\"PartNumber\\": 1, \\"ETag\\": $(node -p 'JSON.stringify(process.argv[1])' "$etag")}]}"`,
  ],
  [
    'Poll until the status is completed: 202 means not ready yet.',
    `until curl --silent -H "x-api-key: $SERVICE_API_KEY" "${DEFAULT_URL}/v1/asynch/prediction?request_id=$(field request_id)" | tee result.json | grep --quiet '"completed"'; do sleep 1; done; cat result.json`,
  ],
];
