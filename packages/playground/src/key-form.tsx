import { useState } from 'preact/hooks';
import { Problem } from './answers.tsx';

interface Props {
  readonly problem: unknown;
  readonly onKey: (key: string, remember: boolean) => void;
}

export function KeyForm({ problem, onKey }: Props) {
  const [key, setKey] = useState('');
  const [remember, setRemember] = useState(false);
  return (
    <form
      class="card key"
      onSubmit={(event) => {
        event.preventDefault();
        onKey(key.trim(), remember);
      }}
    >
      <h2>Enter your API key</h2>
      <p>
        The first start of the server prints a link to this page that contains a key. Create another key with{' '}
        <code>npx undertone keys create me</code>. A short-lived token works too.
      </p>
      {problem !== undefined && <Problem error={problem} />}
      <div class="field">
        <label for="key">API key or token</label>
        <input
          id="key"
          type="password"
          autocomplete="off"
          required
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <button type="submit" class="main" disabled={key.trim() === ''}>
          Use this key
        </button>
      </div>
      <label>
        <input
          type="checkbox"
          checked={remember}
          onChange={(event) => setRemember(event.currentTarget.checked)}
        />{' '}
        Remember it in this browser (otherwise until you close this tab)
      </label>
    </form>
  );
}
