import { useRef } from 'preact/hooks';
import { Canvas } from './canvas.tsx';
import { cellsOf } from './cells.ts';
import type { Scene } from './draw.ts';
import { isEmotion, segmentsOf } from './segments.ts';
import { clamped, isWhole, type View } from './view.ts';

const LANE = 12;

interface Props {
  readonly scene: Scene;
  readonly view: View;
  readonly onView: (view: View) => void;
}

/** The whole recording with the visible part as a window. A press or a drag moves the window. */
export function Overview({ scene, view, onView }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const { seconds, channels, steps } = scene;
  const moveTo = (clientX: number) => {
    const { left = 0, width = 1 } = element.current?.getBoundingClientRect() ?? {};
    const middle = ((clientX - left) / width) * seconds;
    const half = (view.to - view.from) / 2;
    onView(clamped({ from: middle - half, to: middle + half }, seconds));
  };
  const share = (at: number) => `${(at / seconds) * 100}%`;
  return (
    // The timeline has the same by keyboard and says so to screen readers.
    <div
      ref={element}
      class="overview"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        moveTo(event.clientX);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) moveTo(event.clientX);
      }}
    >
      <Canvas
        height={channels * LANE}
        paint={(brush, palette, width) => {
          for (let channel = 0; channel < channels; channel++) {
            const own = steps.filter((step) => (step.channel ?? 0) === channel);
            for (const { label, start, end } of segmentsOf(cellsOf(own, width))) {
              if (!isEmotion(label)) continue;
              brush.fillStyle = palette.emotions[label];
              const left = (start / seconds) * width;
              brush.fillRect(
                left,
                channel * LANE + 1,
                Math.max(1, ((end - start) / seconds) * width),
                LANE - 2,
              );
            }
          }
        }}
      />
      {!isWhole(view, seconds) && (
        <i class="window" style={{ left: share(view.from), width: share(view.to - view.from) }} />
      )}
    </div>
  );
}
