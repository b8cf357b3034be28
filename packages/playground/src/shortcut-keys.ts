// The keyboard shortcuts of a result.
export type Action =
  | 'toggle'
  | 'back'
  | 'forward'
  | 'next'
  | 'previous'
  | 'zoomIn'
  | 'zoomOut'
  | 'zoomAll'
  | 'panLeft'
  | 'panRight'
  | 'curves'
  | 'table'
  | 'help';

/** Keys, what they do, and how the sheet shows them. */
export const SHORTCUTS: readonly { action: Action; keys: readonly string[]; shown: string; text: string }[] =
  [
    { action: 'toggle', keys: [' ', 'k'], shown: 'Space or K', text: 'Play or pause' },
    { action: 'back', keys: ['ArrowLeft'], shown: '←', text: '5 seconds back' },
    { action: 'forward', keys: ['ArrowRight'], shown: '→', text: '5 seconds forward' },
    { action: 'next', keys: ['n'], shown: 'N', text: 'Next place with the emotion to find' },
    { action: 'previous', keys: ['p'], shown: 'P', text: 'Previous place' },
    { action: 'zoomIn', keys: ['+', '='], shown: '+', text: 'Zoom in (also Ctrl and wheel, or pinch)' },
    { action: 'zoomOut', keys: ['-'], shown: '−', text: 'Zoom out' },
    { action: 'zoomAll', keys: ['0'], shown: '0', text: 'Show the whole recording' },
    {
      action: 'panLeft',
      keys: ['Shift+ArrowLeft'],
      shown: 'Shift ←',
      text: 'Move the view left (also drag)',
    },
    { action: 'panRight', keys: ['Shift+ArrowRight'], shown: 'Shift →', text: 'Move the view right' },
    { action: 'curves', keys: ['c'], shown: 'C', text: 'Probability curves on or off' },
    { action: 'table', keys: ['t'], shown: 'T', text: 'All recordings as a table' },
    { action: 'help', keys: ['?'], shown: '?', text: 'This list' },
  ];

export function actionOf(event: { readonly key: string; readonly shiftKey: boolean }): Action | undefined {
  const isArrow = event.key.startsWith('Arrow');
  const key =
    isArrow && event.shiftKey
      ? `Shift+${event.key}`
      : event.key.length === 1
        ? event.key.toLowerCase()
        : event.key;
  return SHORTCUTS.find(({ keys }) => keys.includes(key))?.action;
}
