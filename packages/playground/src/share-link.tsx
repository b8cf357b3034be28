import { useState } from 'preact/hooks';

interface Props {
  readonly requestId: string;
  readonly expiresAt?: string | undefined;
}

/** A link to this result. It contains no key: whoever opens it needs one of the same owner. */
export function ShareLink({ requestId, expiresAt }: Props) {
  const [copied, setCopied] = useState(false);
  const link = `${location.origin}/#request=${requestId}`;
  const until = expiresAt ? `until ${new Date(expiresAt).toLocaleString()}` : 'for 24 hours';
  const copy = async () => {
    await navigator.clipboard?.writeText(link).catch(() => undefined);
    setCopied(true);
  };
  return (
    <>
      <button type="button" onClick={copy} aria-expanded={copied}>
        Share link
      </button>
      {copied && (
        <span class="share" role="status">
          <input type="text" readOnly value={link} aria-label="Link to this result" />{' '}
          <span class="note">Works with a key of the same owner, {until}.</span>
        </span>
      )}
    </>
  );
}
