import { useEffect, useState } from 'preact/hooks';

export interface Playback {
  /** The position in seconds. */
  readonly at: number;
  /** Whether it was ever moved. */
  readonly moved: boolean;
  readonly seek: (seconds: number) => void;
  readonly play: (seconds: number) => void;
  readonly toggle: () => void;
}

/** The position in a recording: that of its player, or one without sound if the page does not have the audio. */
export function usePlayback(player: HTMLAudioElement | null): Playback {
  const [at, setAt] = useState<number>();
  useEffect(() => {
    if (!player) return;
    const onTime = () => setAt(player.currentTime);
    const events = ['timeupdate', 'seeking', 'seeked'] as const;
    for (const event of events) player.addEventListener(event, onTime);
    return () => {
      for (const event of events) player.removeEventListener(event, onTime);
    };
  }, [player]);
  const seek = (seconds: number) => {
    setAt(seconds);
    if (player) player.currentTime = seconds;
  };
  // A player without a source, or one that the browser stops at once, is no error of the page.
  const start = () => void player?.play().catch(() => undefined);
  const play = (seconds: number) => {
    seek(seconds);
    start();
  };
  const toggle = () => {
    if (player?.paused === false) player.pause();
    else start();
  };
  return { at: at ?? 0, moved: at !== undefined, seek, play, toggle };
}
