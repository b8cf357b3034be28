import type { EmotionClient, RequestSummary } from '@undertone/sdk';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { Problem } from './answers.tsx';
import type { Question } from './ask.tsx';
import { hoursUntil } from './server-time.ts';

const PAGE_SIZE = 20;

const STATES: Record<RequestSummary['status'], string> = {
  uploading: 'upload not finished',
  queued: 'waiting',
  processing: 'being analysed',
  completed: '',
  failed: 'failed',
  expired: 'expired',
};

interface Props {
  readonly client: EmotionClient;
  /** Requests that are open on the page. */
  readonly opened: ReadonlySet<string>;
  /** Changes when the list may have changed. */
  readonly version: number;
  readonly onOpen: (requestId: string, name: string) => void;
  readonly ask: (question: Question) => Promise<boolean>;
  readonly announce: (text: string) => void;
}

/** What the server still has of this key: open it, or delete it. */
export function ServerList({ client, opened, version, onOpen, ask, announce }: Props) {
  const [requests, setRequests] = useState<readonly RequestSummary[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [error, setError] = useState<unknown>();
  const load = useCallback(
    async (from?: string) => {
      try {
        const page = await client.asynch.list({
          limit: PAGE_SIZE,
          ...(from !== undefined && { cursor: from }),
        });
        setRequests((before) => (from === undefined ? page.requests : [...before, ...page.requests]));
        setCursor(page.next_cursor);
        setError(undefined);
      } catch (reason) {
        // A token for short recordings alone may not list anything.
        if ((reason as { status?: number }).status !== 403) setError(reason);
      }
    },
    [client],
  );
  useEffect(() => {
    void load();
    const onFocus = () => void load();
    addEventListener('focus', onFocus);
    return () => removeEventListener('focus', onFocus);
  }, [load, version]);

  const shown = requests.filter(({ request_id, status }) => status !== 'expired' && !opened.has(request_id));
  const remove = async ({ request_id, label }: RequestSummary) => {
    const name = label ?? 'recording without a name';
    const text = `Delete ${name} and its result from the server? This cannot be undone.`;
    if (!(await ask({ text, yes: 'Delete', danger: true }))) return;
    try {
      await client.asynch.delete(request_id);
      announce(`${name} deleted`);
      await load();
    } catch (reason) {
      setError(reason);
    }
  };
  if (shown.length === 0 && error === undefined) return null;
  return (
    <section aria-labelledby="stored">
      <h2 id="stored">On the server</h2>
      {error !== undefined && <Problem error={error} onRetry={() => void load()} />}
      <ul class="list">
        {shown.map((request) => {
          const { request_id, label, status, expires_at } = request;
          const name = label ?? `Recording ${request_id.slice(0, 8)}`;
          return (
            <li key={request_id}>
              <button
                type="button"
                class="item"
                disabled={status === 'uploading'}
                onClick={() => onOpen(request_id, name)}
              >
                <span class="name">{name}</span>
                <span class="note">{STATES[status] || `${hoursUntil(expires_at)} left`}</span>
              </button>
              <button
                type="button"
                class="quiet bin"
                aria-label={`Delete ${name} from the server`}
                title="Delete from the server"
                onClick={() => void remove(request)}
              >
                ✕
              </button>
            </li>
          );
        })}
      </ul>
      {cursor !== null && (
        <button type="button" class="quiet" onClick={() => void load(cursor)}>
          Show more
        </button>
      )}
    </section>
  );
}
