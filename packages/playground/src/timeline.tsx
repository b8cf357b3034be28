import { formatTimestamp, hasSpeech, NO_SPEECH } from '@undertone/contract';
import { useEffect, useRef, useState } from 'preact/hooks';
import { draw, heightOf, readPalette, type Scene } from './draw.ts';
import { describe, percent, ranked } from './result.ts';

interface Props extends Scene {
  readonly label: string;
  readonly player?: HTMLAudioElement | null;
}

const ARROW_SECONDS = 5;

/** A click plays from there, hovering shows the probabilities, and the arrow keys move the position. */
export function Timeline({ label, player, ...scene }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const [at, setAt] = useState<number>();
  const playedAt = usePlayed(player);
  const { from, to, steps, channels } = scene;
  const height = heightOf(scene);

  useEffect(() => {
    const element = canvas.current;
    const brush = element?.getContext('2d');
    if (!element || !brush || width === 0) return;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    draw(brush, scene, readPalette(element.parentElement ?? document.body), width);
  });

  const secondsAt = (event: MouseEvent) => from + (event.offsetX / Math.max(1, width)) * (to - from);
  const play = (seconds: number) => {
    if (!player) return;
    player.currentTime = seconds;
    void player.play().catch(() => undefined);
  };
  const moveTo = (seconds: number) => {
    const next = Math.max(from, Math.min(to, seconds));
    setAt(next);
    if (player) player.currentTime = next;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const now = at ?? playedAt ?? from;
    if (event.key === 'ArrowRight') moveTo(now + ARROW_SECONDS);
    else if (event.key === 'ArrowLeft') moveTo(now - ARROW_SECONDS);
    else if (event.key === 'Home') moveTo(from);
    else if (event.key === 'End') moveTo(to);
    else if ((event.key === 'Enter' || event.key === ' ') && player) {
      if (player.paused) play(now);
      else player.pause();
    } else return;
    event.preventDefault();
  };

  const shown = at ?? playedAt ?? from;
  const current = steps.filter(({ start, end }) => shown >= start && shown < end);
  const readout = current.map((step) => {
    const channel = channels > 1 ? `Channel ${step.channel ?? 0}: ` : '';
    if (!hasSpeech(step)) return channel + NO_SPEECH;
    const all =
      step.all_predictions &&
      ranked(step.all_predictions).map(([name, share]) => `${name} ${percent(share)}`);
    return channel + (all?.join(', ') ?? `${describe(step)} ${percent(step.confidence)}`);
  });
  return (
    <div class="timeline">
      <div
        class="picture"
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={Math.floor(from)}
        aria-valuemax={Math.ceil(to)}
        aria-valuenow={Math.round(shown)}
        aria-valuetext={`${formatTimestamp(Math.max(0, shown))} ${current.map(describe).join(', ')}`}
        onClick={(event) => play(secondsAt(event))}
        onMouseMove={(event) => setAt(secondsAt(event))}
        onMouseLeave={() => setAt(undefined)}
        onKeyDown={onKeyDown}
      >
        <canvas ref={canvas} style={{ height: `${height}px` }} />
        {playedAt !== undefined && playedAt >= from && playedAt <= to && (
          <i class="playhead" style={{ left: `${((playedAt - from) / (to - from)) * 100}%` }} />
        )}
      </div>
      <p class="readout">
        <b>{formatTimestamp(Math.max(0, shown))}</b> {readout.join(' · ') || '…'}
      </p>
    </div>
  );
}

/** The width of the canvas. Renders again after a change of width or theme. */
function useWidth(canvas: { current: HTMLCanvasElement | null }): number {
  const [width, setWidth] = useState(0);
  const [, redraw] = useState({});
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (!parent) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(parent.clientWidth)));
    observer.observe(parent);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const onScheme = () => redraw({});
    scheme.addEventListener('change', onScheme);
    return () => {
      observer.disconnect();
      scheme.removeEventListener('change', onScheme);
    };
  }, [canvas]);
  return width;
}

/** Position of the player in seconds; undefined before its first use. */
function usePlayed(player: HTMLAudioElement | null | undefined): number | undefined {
  const [at, setAt] = useState<number>();
  useEffect(() => {
    if (!player) return;
    const onTime = () => setAt(player.currentTime);
    for (const event of ['timeupdate', 'seeked']) player.addEventListener(event, onTime);
    return () => {
      for (const event of ['timeupdate', 'seeked']) player.removeEventListener(event, onTime);
    };
  }, [player]);
  return at;
}
