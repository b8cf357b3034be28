import { useEffect, useRef } from 'preact/hooks';

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
const SHORTCUTS: readonly { action: Action; keys: readonly string[]; shown: string; text: string }[] = [
  { action: 'toggle', keys: [' ', 'k'], shown: 'Space or K', text: 'Play or pause' },
  { action: 'back', keys: ['ArrowLeft'], shown: '←', text: '5 seconds back' },
  { action: 'forward', keys: ['ArrowRight'], shown: '→', text: '5 seconds forward' },
  { action: 'next', keys: ['n'], shown: 'N', text: 'Next place with the emotion to find' },
  { action: 'previous', keys: ['p'], shown: 'P', text: 'Previous place' },
  { action: 'zoomIn', keys: ['+', '='], shown: '+', text: 'Zoom in (also Ctrl and wheel, or pinch)' },
  { action: 'zoomOut', keys: ['-'], shown: '−', text: 'Zoom out' },
  { action: 'zoomAll', keys: ['0'], shown: '0', text: 'Show the whole recording' },
  { action: 'panLeft', keys: ['Shift+ArrowLeft'], shown: 'Shift ←', text: 'Move the view left (also drag)' },
  { action: 'panRight', keys: ['Shift+ArrowRight'], shown: 'Shift →', text: 'Move the view right' },
  { action: 'curves', keys: ['c'], shown: 'C', text: 'Probability curves on or off' },
  { action: 'table', keys: ['t'], shown: 'T', text: 'All recordings as a table' },
  { action: 'help', keys: ['?'], shown: '?', text: 'This list' },
];

const OFF = 'undertone-shortcuts-off';

export function actionOf(event: Pick<KeyboardEvent, 'key' | 'shiftKey'>): Action | undefined {
  const isArrow = event.key.startsWith('Arrow');
  const key =
    isArrow && event.shiftKey
      ? `Shift+${event.key}`
      : event.key.length === 1
        ? event.key.toLowerCase()
        : event.key;
  return SHORTCUTS.find(({ keys }) => keys.includes(key))?.action;
}

/** Fields and buttons keep their own keys. */
function isTaken({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof Element) || document.querySelector('dialog[open]')) return true;
  if (target.closest('input, select, textarea')) return true;
  return (
    (key === ' ' || key.startsWith('Arrow')) && target.closest('button, summary, a, audio, .rows') !== null
  );
}

/** Runs actions on their keys, unless the user turned that off. */
export function useShortcuts(onAction: (action: Action) => boolean): void {
  const latest = useRef(onAction);
  latest.current = onAction;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTaken(event)) return;
      const action = actionOf(event);
      if (action === undefined || (action !== 'help' && localStorage.getItem(OFF) !== null)) return;
      if (latest.current(action)) event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}

/** The list of keys. */
export function ShortcutSheet({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !element.current?.open) element.current?.showModal();
    if (!open && element.current?.open) element.current.close();
  }, [open]);
  return (
    <dialog ref={element} aria-labelledby="shortcuts" onClose={onClose}>
      <h2 id="shortcuts">Keyboard shortcuts</h2>
      <dl class="keys">
        {SHORTCUTS.map(({ shown, text }) => (
          <div key={shown}>
            <dt>
              <kbd>{shown}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p class="row">
        <label>
          <input
            type="checkbox"
            defaultChecked={localStorage.getItem(OFF) === null}
            onChange={(event) => {
              if (event.currentTarget.checked) localStorage.removeItem(OFF);
              else localStorage.setItem(OFF, 'off');
            }}
          />{' '}
          Shortcuts are on
        </label>
        <button type="button" class="main" onClick={() => element.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}
