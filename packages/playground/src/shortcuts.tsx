import { useEffect, useRef } from 'preact/hooks';
import { type Action, actionOf, SHORTCUTS } from './shortcut-keys.ts';

const OFF = 'undertone-shortcuts-off';

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
