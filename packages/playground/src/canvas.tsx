import { useEffect, useRef, useState } from 'preact/hooks';
import { type Palette, readPalette } from './palette.ts';

interface Props {
  readonly height: number;
  readonly paint: (brush: CanvasRenderingContext2D, palette: Palette, width: number) => void;
}

/** A canvas as wide as its parent, sharp on every screen, drawn again after a change of width or theme. */
export function Canvas({ height, paint }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  useEffect(() => {
    const element = canvas.current;
    const brush = element?.getContext('2d');
    if (!element || !brush || width === 0) return;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    paint(brush, readPalette(element.parentElement ?? document.body), width);
  });
  return <canvas ref={canvas} style={{ height: `${height}px` }} />;
}

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
