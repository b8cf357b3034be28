import { PATHS } from '@undertone/contract';
import { useState } from 'preact/hooks';
import type { Result } from './result.ts';

/** Code that gives the same result. */
export function CodeLines({ result, fileName }: { readonly result: Result; readonly fileName: string }) {
  return (
    <details class="code">
      <summary>Code for this</summary>
      {Object.entries(linesFor(result, fileName)).map(([language, text]) => (
        <figure key={language}>
          <figcaption>
            {language} <Copy text={text} />
          </figcaption>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must be reachable by keyboard */}
          <pre tabIndex={0}>{text}</pre>
        </figure>
      ))}
      <p class="note">
        Set <code>SERVICE_API_KEY</code> to your key. Create one with{' '}
        <code>npx undertone keys create me</code>. <a href="/docs">All paths and options</a>
      </p>
    </details>
  );
}

function Copy({ text }: { readonly text: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="quiet"
      onClick={() => navigator.clipboard?.writeText(text).then(() => setDone(true))}
    >
      {done ? 'Copied' : 'Copy'}
    </button>
  );
}

function linesFor({ from, model, channels, requestId }: Result, fileName: string): Record<string, string> {
  const base = location.origin;
  const key = '-H "x-api-key: $SERVICE_API_KEY"';
  const name = JSON.stringify(fileName);
  const shellName = `'${fileName.replaceAll("'", `'\\''`)}'`;
  const typescript = (call: string) =>
    `import { EmotionClient } from '@undertone/sdk';\n\nconst client = new EmotionClient({ baseUrl: '${base}' });\n${call}`;
  const python = (call: string) =>
    `from undertone_client import EmotionClient\n\nclient = EmotionClient(base_url="${base}")\n${call}`;
  if (from === 'discrete') {
    return {
      curl: `curl ${key} -F file=@${shellName} '${base}${PATHS.discrete}?model=${model}'`,
      TypeScript: typescript(`console.log(await client.discrete.emotions(${name}, { model: '${model}' }));`),
      Python: python(`print(client.discrete.emotions(${name}, model="${model}"))`),
    };
  }
  if (from === 'asynch') {
    const isSeparate = channels > 1;
    const id = requestId ?? 'REQUEST_ID';
    return {
      curl:
        `curl ${key} -X POST -T ${shellName} '${base}${PATHS.asynch}/requests?model=${model}${isSeparate ? '&channels=separate' : ''}'\n` +
        `curl ${key} '${base}${PATHS.asynch}/prediction?request_id=${id}&details=true'`,
      TypeScript: typescript(
        `const { emotions } = await client.asynch.classify(${name}, { model: '${model}'${isSeparate ? ", channels: 'separate'" : ''} });\nconsole.log(emotions);`,
      ),
      Python: python(
        `print(client.asynch.classify(${name}, model="${model}"${isSeparate ? ', channels="separate"' : ''}).emotions)`,
      ),
    };
  }
  return {
    'Command line': `arecord -q -f S16_LE -r 16000 | npx undertone listen - --url ${base} --model ${model}`,
    TypeScript: typescript(
      `const stream = client.stream({ model: '${model}', sampleRate: 16_000 }).feed(samples); // 16-bit, mono\n` +
        'for await (const { t, main_emotion, confidence } of stream) console.log(t, main_emotion, confidence);',
    ),
    Python: python(
      `with client.stream(model="${model}", sample_rate=16_000) as stream:\n` +
        '    for prediction in stream.feed(samples):  # 16-bit, mono\n' +
        '        print(prediction.t, prediction.main_emotion, prediction.confidence)',
    ),
  };
}
