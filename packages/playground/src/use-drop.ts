import { useEffect, useRef, useState } from 'preact/hooks';
import { dropped, type PathFile } from './dropped.ts';

/** Accepts files and folders dropped anywhere on the page. Returns whether something is being dragged over it. */
export function useDrop(onFiles: (files: readonly PathFile[]) => void): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;
  useEffect(() => {
    const onDrag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === 'dragover');
      if (event.type === 'drop' && event.dataTransfer) {
        void dropped(event.dataTransfer).then((files) => latest.current(files));
      }
    };
    const events = ['dragover', 'dragleave', 'drop'] as const;
    for (const event of events) addEventListener(event, onDrag);
    return () => {
      for (const event of events) removeEventListener(event, onDrag);
    };
  }, []);
  return over;
}
