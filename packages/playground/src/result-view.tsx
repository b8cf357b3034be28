import { formatTimestamp, MODELS } from '@undertone/contract';
import type { EmotionClient } from '@undertone/sdk';
import { useMemo, useState } from 'preact/hooks';
import { Problem } from './answers.tsx';
import { channelName } from './channel-names.ts';
import { CodeLines } from './code-lines.tsx';
import { Comparison } from './comparison.tsx';
import { Filter, Finder, type Search } from './controls.tsx';
import type { Scene } from './draw.ts';
import type { Entry } from './entry.ts';
import { Exports } from './exports.tsx';
import { Headlines } from './headlines.tsx';
import { Overview } from './overview.tsx';
import { usePlayback } from './playback.ts';
import type { Result } from './result.ts';
import { Rows } from './rows.tsx';
import { SecondRecording } from './second-recording.tsx';
import { filtered, hitsOf, nextHit, segmentsOf } from './segments.ts';
import { ShareLink } from './share-link.tsx';
import type { Action } from './shortcut-keys.ts';
import { useShortcuts } from './shortcuts.tsx';
import { type Label, summary } from './summary.ts';
import { Timeline } from './timeline.tsx';
import { following, isWhole, panned, type View, ZOOM_STEP, zoomed } from './view.ts';

interface Props {
  readonly client: EmotionClient;
  readonly entry: Entry;
  readonly result: Result;
  /** Other recordings with a result, to show one below this one. */
  readonly others: readonly Entry[];
  readonly names: readonly string[];
  readonly onRename: (channel: number, name: string) => void;
  readonly announce: (text: string) => void;
}

const ARROW_SECONDS = 5;

export function ResultView({ client, entry, result, others, names, onRename, announce }: Props) {
  const { name, recording, session } = entry;
  const seconds = Math.max(1, result.seconds);
  const [player, setPlayer] = useState<HTMLAudioElement | null>(null);
  const playback = usePlayback(player);
  const [view, setView] = useState<View>({ from: 0, to: seconds });
  const [curves, setCurves] = useState(false);
  const [filter, setFilter] = useState<ReadonlySet<Label>>(new Set());
  const [search, setSearch] = useState<Search>({ emotion: MODELS[result.model][0], threshold: 0.6 });
  const [compared, setCompared] = useState(false);
  const [error, setError] = useState<unknown>();

  const isSeparate = result.channels > 1;
  const lanes = isSeparate
    ? Array.from({ length: result.channels }, (_, channel) => channelName(names, channel))
    : undefined;
  const scene: Scene = {
    steps: result.steps,
    channels: result.channels,
    peaks: recording?.peaks ?? (session ? [session.levels] : []),
    seconds,
    curves,
    filter,
    ...(lanes && { names: lanes }),
  };
  const segments = useMemo(() => segmentsOf(result.steps), [result]);
  const rows = useMemo(() => filtered(segments, filter), [segments, filter]);
  const hits = useMemo(() => hitsOf(result.steps, search.emotion, search.threshold), [result, search]);
  const hasDetail = result.steps.length > result.channels;
  // Playback turns the page of a zoomed timeline.
  const shown = player && !player.paused ? following(view, playback.at, seconds) : view;

  const go = (direction: 'next' | 'previous') => {
    const hit = nextHit(hits, playback.moved ? playback.at : -1, direction);
    if (!hit) return announce(`No ${search.emotion} from ${Math.round(search.threshold * 100)} % on`);
    setView(following(shown, hit.start, seconds));
    if (recording) playback.play(hit.start);
    else playback.seek(hit.start);
    announce(`${search.emotion} at ${formatTimestamp(hit.start)}`);
  };
  const zoom = (factor: number) =>
    setView(zoomed(shown, factor, playback.moved ? playback.at : (shown.from + shown.to) / 2, seconds));
  const actions: Partial<Record<Action, () => void>> = {
    toggle: playback.toggle,
    back: () => playback.seek(Math.max(0, playback.at - ARROW_SECONDS)),
    forward: () => playback.seek(Math.min(seconds, playback.at + ARROW_SECONDS)),
    next: () => go('next'),
    previous: () => go('previous'),
    zoomIn: () => zoom(ZOOM_STEP),
    zoomOut: () => zoom(1 / ZOOM_STEP),
    zoomAll: () => setView({ from: 0, to: seconds }),
    panLeft: () => setView(panned(shown, -(shown.to - shown.from) / 4, seconds)),
    panRight: () => setView(panned(shown, (shown.to - shown.from) / 4, seconds)),
    curves: () => setCurves(!curves),
  };
  useShortcuts((action) => {
    const act = actions[action];
    act?.();
    return act !== undefined;
  });

  return (
    <>
      <Headlines {...{ result, names, onRename }} />
      {hasDetail && (
        <div class="zoom">
          <Overview scene={scene} view={shown} onView={setView} />
          <button
            type="button"
            aria-label="Zoom out"
            onClick={actions.zoomOut}
            disabled={isWhole(shown, seconds)}
          >
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={actions.zoomIn}>
            +
          </button>
          <button type="button" onClick={actions.zoomAll} disabled={isWhole(shown, seconds)}>
            All
          </button>
        </div>
      )}
      <Timeline
        label={`Timeline of ${name}`}
        scene={scene}
        view={shown}
        onView={setView}
        at={playback.at}
        hasPlayhead={playback.moved}
        onSeek={playback.seek}
        onPlay={recording ? playback.play : playback.seek}
      />
      {recording && (
        // biome-ignore lint/a11y/useMediaCaption: the service does not transcribe speech
        <audio
          ref={setPlayer}
          controls
          preload="metadata"
          src={recording.url}
          aria-label={`Player of ${name}`}
        />
      )}
      {!recording && <p class="note">{noAudio(result)}</p>}
      {recording && recording.peaks.length === 0 && (
        <p class="note">
          No waveform: the file is too large, or your browser cannot read its format.
          {result.from === 'discrete' && ' If it is stereo, its channels were mixed.'}
        </p>
      )}
      {hasDetail && (
        <div class="toolbar">
          <Finder model={result.model} search={search} count={hits.length} onSearch={setSearch} onGo={go} />
          <Filter model={result.model} filter={filter} onFilter={setFilter} />
          <button type="button" class="toggle" aria-pressed={curves} onClick={actions.curves}>
            Probability curves
          </button>
        </div>
      )}
      <Rows
        name={name}
        segments={rows}
        names={lanes}
        at={playback.moved ? playback.at : undefined}
        onPlay={recording ? playback.play : playback.seek}
      />
      {error !== undefined && <Problem error={error} />}
      <p class="actions">
        <Exports
          {...{ name, result, scene, recording, onError: setError }}
          title={`${name}: ${summary(result.steps, (channel) => channelName(names, channel))}`}
        />
        {recording && (
          <button type="button" aria-expanded={compared} onClick={() => setCompared(!compared)}>
            Compare models
          </button>
        )}
        {result.requestId && <ShareLink requestId={result.requestId} expiresAt={result.expiresAt} />}
      </p>
      {compared && recording && <Comparison {...{ client, recording, result, name }} />}
      <SecondRecording entry={entry} result={result} others={others} names={names} />
      <CodeLines result={result} fileName={name} />
    </>
  );
}

function noAudio({ from }: Result): string {
  if (from === 'stream') return 'The sound was not kept.';
  return 'The page no longer has the sound of this recording. Choose the file again to hear it.';
}
