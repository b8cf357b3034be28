import { useEffect, useRef } from 'preact/hooks';
import { panned, type View, zoomed } from './view.ts';

interface Options {
  readonly view: View;
  readonly seconds: number;
  readonly onView: ((view: View) => void) | undefined;
}

/** A pointer that moved less than this was a click. */
const CLICK_PIXELS = 5;
const WHEEL_ZOOM = 0.01;

/**
 * Zoom and pan by hand: Ctrl and wheel or a pinch zooms, Shift and wheel, a sideways wheel or a drag pans. A plain wheel
 * scrolls the page. Returns whether the last pointer was dragged, so that its click can be ignored.
 */
export function useGestures(
  element: { current: HTMLElement | null },
  options: Options,
): { readonly wasDrag: () => boolean } {
  const latest = useRef(options);
  latest.current = options;
  const dragged = useRef(false);
  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const timeAt = (clientX: number) => {
      const { left, width } = target.getBoundingClientRect();
      const { view } = latest.current;
      return view.from + ((clientX - left) / Math.max(1, width)) * (view.to - view.from);
    };
    const secondsPerPixel = () => {
      const { view } = latest.current;
      return (view.to - view.from) / Math.max(1, target.clientWidth);
    };
    const onWheel = (event: WheelEvent) => {
      const { view, seconds, onView } = latest.current;
      if (!onView) return;
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        onView(zoomed(view, Math.exp(-event.deltaY * WHEEL_ZOOM), timeAt(event.clientX), seconds));
      } else if (sideways !== 0 && Math.abs(sideways) >= Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        onView(panned(view, sideways * secondsPerPixel(), seconds));
      } else return;
      event.preventDefault();
    };

    const pointers = new Map<number, { x: number; startX: number }>();
    const spread = () => {
      const [a, b] = [...pointers.values()];
      return a && b ? { distance: Math.abs(a.x - b.x), middle: (a.x + b.x) / 2 } : undefined;
    };
    const onDown = (event: PointerEvent) => {
      if (pointers.size === 0) dragged.current = false;
      pointers.set(event.pointerId, { x: event.clientX, startX: event.clientX });
    };
    const onMove = (event: PointerEvent) => {
      const { view, seconds, onView } = latest.current;
      const pointer = pointers.get(event.pointerId);
      if (!pointer || !onView) return;
      const before = spread();
      const movedBy = event.clientX - pointer.x;
      if (Math.abs(event.clientX - pointer.startX) < CLICK_PIXELS && !dragged.current) return;
      dragged.current = true;
      pointers.set(event.pointerId, { ...pointer, x: event.clientX });
      const after = spread();
      if (before && after) {
        const factor = Math.max(1, after.distance) / Math.max(1, before.distance);
        onView(zoomed(view, factor, timeAt(after.middle), seconds));
      } else onView(panned(view, -movedBy * secondsPerPixel(), seconds));
    };
    const onUp = (event: PointerEvent) => pointers.delete(event.pointerId);

    target.addEventListener('wheel', onWheel, { passive: false });
    target.addEventListener('pointerdown', onDown);
    addEventListener('pointermove', onMove);
    addEventListener('pointerup', onUp);
    addEventListener('pointercancel', onUp);
    return () => {
      target.removeEventListener('wheel', onWheel);
      target.removeEventListener('pointerdown', onDown);
      removeEventListener('pointermove', onMove);
      removeEventListener('pointerup', onUp);
      removeEventListener('pointercancel', onUp);
    };
  }, [element]);
  return { wasDrag: () => dragged.current };
}
