import { hasSpeech, labelOf, NO_SPEECH, UNSURE } from '@undertone/contract';
import { Bars, Legend, ShareBar } from './answers.tsx';
import { channelName } from './channel-names.ts';
import type { Result } from './result.ts';
import { averagesOf, byChannel, headline, sharesOf } from './summary.ts';

interface Props {
  readonly result: Result;
  readonly names: readonly string[];
  readonly onRename: (channel: number, name: string) => void;
}

/** One headline per channel, with the shares that it counts. */
export function Headlines({ result, names, onRename }: Props) {
  const channels = byChannel(result.steps);
  const isSeparate = result.channels > 1;
  return (
    <div class={isSeparate ? 'channels' : ''}>
      {channels.map(([channel, steps]) => {
        const shares = sharesOf(steps);
        const averages = averagesOf(steps, result.model);
        const sure = steps.some((step) => labelOf(step) !== UNSURE && labelOf(step) !== NO_SPEECH);
        return (
          <section key={channel} class="headline" aria-label={channelName(names, channel)}>
            {isSeparate && <ChannelName {...{ channel, names, onRename }} />}
            <p class="summary">
              <strong>{headline(steps)}</strong>
            </p>
            {result.from !== 'discrete' && (
              <>
                <ShareBar shares={shares} />
                <Legend shares={shares} />
              </>
            )}
            {result.from === 'discrete' && steps.some(hasSpeech) && <Bars all={averages} sure={sure} />}
            {result.from !== 'discrete' && isSeparate && Object.keys(averages).length > 0 && (
              <details>
                <summary>Average probabilities</summary>
                <Bars all={averages} sure={sure} />
              </details>
            )}
          </section>
        );
      })}
    </div>
  );
}

function ChannelName({ channel, names, onRename }: Omit<Props, 'result'> & { readonly channel: number }) {
  return (
    <input
      class="channel"
      type="text"
      aria-label={`Name of channel ${channel}`}
      title="Click to rename. The name stays for the next recordings."
      placeholder={channelName([], channel)}
      value={names[channel] ?? ''}
      maxLength={40}
      onChange={(event) => onRename(channel, event.currentTarget.value)}
    />
  );
}
