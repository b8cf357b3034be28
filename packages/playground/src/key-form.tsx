import { useState } from 'preact/hooks';
import { Problem } from './card.tsx';

interface Props {
  readonly problem: unknown;
  readonly onKey: (key: string, forLonger: boolean) => void;
}

export function KeyForm({ problem, onKey }: Props) {
  const [key, setKey] = useState('');
  const [forLonger, setForLonger] = useState(false);
  return (
    <form
      class="card key"
      onSubmit={(event) => {
        event.preventDefault();
        onKey(key.trim(), forLonger);
      }}
    >
      <h2>An API key, please</h2>
      <p>
        The first start of the server printed a link to this page with a key in it.{' '}
        <code>npx undertone keys create me</code> makes another key.
      </p>
      {problem !== undefined && <Problem error={problem} />}
      <p class="row">
        <label>
          API key{' '}
          <input
            type="password"
            autocomplete="off"
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="main">
          Use this key
        </button>
      </p>
      <label>
        <input
          type="checkbox"
          checked={forLonger}
          onChange={(event) => setForLonger(event.currentTarget.checked)}
        />{' '}
        Remember it in this browser (otherwise it is forgotten with this tab)
      </label>
    </form>
  );
}
