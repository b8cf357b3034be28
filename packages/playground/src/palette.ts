// Colours and patterns of the current theme.
import { EMOTIONS, type Emotion } from '@undertone/contract';

export interface Palette {
  readonly emotions: Record<Emotion, string>;
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly unsure: string;
}

export function readPalette(element: Element): Palette {
  // Custom properties with light-dark() are resolved only in a real colour property.
  const probe = element.appendChild(document.createElement('i'));
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const emotions = Object.fromEntries(EMOTIONS.map((name) => [name, colour(name)])) as Record<
    Emotion,
    string
  >;
  const [ink, soft, line, unsure] = ['ink', 'soft', 'line', 'unsure'].map(colour) as [
    string,
    string,
    string,
    string,
  ];
  probe.remove();
  return { emotions, ink, soft, line, unsure };
}

/** For a picture on white paper. */
export function onPaper(palette: Palette): Palette {
  return { ...palette, ink: '#1d2430', soft: '#5b6675', line: '#d5dae1', unsure: '#c3c9d2' };
}

export function inkOn(emotion: Emotion): string {
  return emotion === 'happy' ? '#1d1400' : '#ffffff';
}

type Line = [fromX: number, fromY: number, toX: number, toY: number];

/** Lines on a tile of 10 by 10 pixels. Patterns help people who cannot tell the colours apart. */
const PATTERNS: Record<Emotion, readonly Line[]> = {
  angry: [[0, 10, 10, 0]],
  happy: [[5, 4, 5, 6]],
  neutral: [],
  sad: [[0, 5, 10, 5]],
  nervous: [[5, 0, 5, 10]],
  surprised: [
    [5, 0, 5, 10],
    [0, 5, 10, 5],
  ],
  disgusted: [[0, 0, 10, 10]],
};

const tiles = new Map<string, HTMLCanvasElement>();

export function patternOf(
  canvas: CanvasRenderingContext2D,
  emotion: Emotion,
  ground: string,
): CanvasPattern | string {
  const name = `${emotion} ${ground}`;
  const tile = tiles.get(name) ?? tileOf(emotion, ground);
  tiles.set(name, tile);
  return canvas.createPattern(tile, 'repeat') ?? ground;
}

function tileOf(emotion: Emotion, ground: string): HTMLCanvasElement {
  const tile = document.createElement('canvas');
  tile.width = 10;
  tile.height = 10;
  const brush = tile.getContext('2d') as CanvasRenderingContext2D;
  brush.fillStyle = ground;
  brush.fillRect(0, 0, 10, 10);
  brush.strokeStyle = '#ffffff';
  brush.globalAlpha = 0.45;
  brush.lineWidth = 2;
  for (const [fromX, fromY, toX, toY] of PATTERNS[emotion]) {
    brush.beginPath();
    brush.moveTo(fromX, fromY);
    brush.lineTo(toX, toY);
    brush.stroke();
  }
  return tile;
}
