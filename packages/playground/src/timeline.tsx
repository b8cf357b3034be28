import { formatTimestamp, hasSpeech, NO_SPEECH } from '@undertone/contract';
import { useRef, useState } from 'preact/hooks';
import { Canvas } from './canvas.tsx';
import { draw, heightOf, type Scene } from './draw.ts';
import { useGestures } from './gestures.ts';
import { describe, percent, ranked } from './summary.ts';
import type { View } from './view.ts';

interface Props {
  readonly label: string;
  readonly scene: Scene;
  readonly view: View;
  /** Absent if the view cannot be changed. */
  readonly onView?: (view: View) => void;
  /** The position in seconds; without it, the timeline has its own. */
  readonly at?: number;
  /** The position is visible as a line. */
  readonly hasPlayhead?: boolean;
  readonly onSeek?: (seconds: number) => void;
  readonly onPlay?: (seconds: number) => void;
}

const ARROW_SECONDS = 5;

/** A click plays from there, hovering shows the probabilities, and the arrow keys move the position. */
export function Timeline({ label, scene, view, onView, hasPlayhead, onPlay, ...given }: Props) {
  const [own, setOwn] = useState(0);
  const { at = own, onSeek = setOwn } = given;
  const picture = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number>();
  const { from, to } = view;
  const { wasDrag } = useGestures(picture, { view, seconds: scene.seconds, onView });
  const secondsAt = (event: MouseEvent) =>
    from + (event.offsetX / Math.max(1, picture.current?.clientWidth ?? 1)) * (to - from);
  const moveTo = (seconds: number) => {
    // A resting mouse does not hide where the keyboard goes.
    setHovered(undefined);
    onSeek(Math.max(0, Math.min(scene.seconds, seconds)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowRight') moveTo(at + ARROW_SECONDS);
    else if (event.key === 'ArrowLeft') moveTo(at - ARROW_SECONDS);
    else if (event.key === 'Home') moveTo(0);
    else if (event.key === 'End') moveTo(scene.seconds);
    else if (event.key === 'Enter') onPlay?.(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = Math.max(0, hovered ?? at);
  const current = scene.steps.filter(({ start, end }) => shown >= start && shown < end);
  const readout = current.map((step) => {
    const name = scene.names ? `${scene.names[step.channel ?? 0]}: ` : '';
    if (!hasSpeech(step)) return name + NO_SPEECH;
    const all = step.all_predictions && ranked(step.all_predictions);
    const shares = all?.map(([emotion, share]) => `${emotion} ${percent(share)}`);
    return name + (shares?.join(', ') ?? `${describe(step)} ${percent(step.confidence)}`);
  });
  return (
    <div class="timeline">
      <div
        ref={picture}
        class="picture"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.ceil(scene.seconds)}
        aria-valuenow={Math.round(at)}
        aria-valuetext={`${formatTimestamp(Math.max(0, at))} ${current.map(describe).join(', ')}`}
        onClick={(event) => {
          if (!wasDrag()) (onPlay ?? onSeek)(secondsAt(event));
        }}
        onMouseMove={(event) => setHovered(secondsAt(event))}
        onMouseLeave={() => setHovered(undefined)}
        onKeyDown={onKeyDown}
      >
        <Canvas
          height={heightOf(scene)}
          paint={(brush, palette, width) => draw(brush, scene, view, palette, width)}
        />
        {hasPlayhead && at >= from && at <= to && (
          <i class="playhead" style={{ left: `${((at - from) / (to - from)) * 100}%` }} />
        )}
      </div>
      <p class="readout">
        <b>{formatTimestamp(shown)}</b> {readout.join(' · ') || '–'}
      </p>
    </div>
  );
}
