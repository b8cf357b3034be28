// Names of channels, such as agent and caller. They stay in this browser and apply to every recording.
const NAME = 'undertone-channels';

export function readChannelNames(): readonly string[] {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(NAME) ?? '[]');
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}

export function keepChannelNames(names: readonly string[]): void {
  localStorage.setItem(NAME, JSON.stringify(names));
}

/** Channels count from 0, as in the API. */
export function channelName(names: readonly string[], channel: number): string {
  return names[channel]?.trim() || `Channel ${channel}`;
}

export function renamed(names: readonly string[], channel: number, name: string): readonly string[] {
  return Array.from({ length: Math.max(names.length, channel + 1) }, (_, i) =>
    i === channel ? name : (names[i] ?? ''),
  );
}
