import { useEffect, useRef, useState } from 'preact/hooks';

export interface Question {
  readonly text: string;
  readonly yes: string;
  readonly no?: string;
  readonly danger?: boolean;
}

type Ask = (question: Question) => Promise<boolean>;

/** A question before something that cannot be undone. Escape and the focused button mean no. */
export function useAsk(): { readonly ask: Ask; readonly dialog: preact.JSX.Element } {
  const element = useRef<HTMLDialogElement>(null);
  const answer = useRef<(yes: boolean) => void>(() => undefined);
  const [question, setQuestion] = useState<Question>();
  const ask: Ask = (asked) => {
    answer.current(false);
    setQuestion(asked);
    return new Promise((resolve) => {
      answer.current = resolve;
    });
  };
  useEffect(() => {
    if (question && !element.current?.open) element.current?.showModal();
  }, [question]);
  const close = (yes: boolean) => {
    answer.current(yes);
    element.current?.close();
    setQuestion(undefined);
  };
  const dialog = (
    <dialog ref={element} aria-labelledby="question" onCancel={() => close(false)}>
      <p id="question">{question?.text}</p>
      <p class="row end">
        {/* First in the dialog, so that it has the focus and a hasty Enter or double click does no harm. */}
        <button type="button" onClick={() => close(false)}>
          {question?.no ?? 'Cancel'}
        </button>
        <button type="button" class={question?.danger ? 'danger' : 'main'} onClick={() => close(true)}>
          {question?.yes}
        </button>
      </p>
    </dialog>
  );
  return { ask, dialog };
}
