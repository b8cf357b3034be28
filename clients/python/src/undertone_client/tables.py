"""Tables of many results."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._optional import optional

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from .results import Outcome

_COLUMNS = ("file", "emotion", "confidence", "speech_seconds", "error", "code")


def to_dataframe(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """
    Return a table of the outcomes of `discrete.many`, one row per recording, in the order of the batch. Needs pandas.

    Its columns are file, emotion (``no speech`` where there is none), confidence, speech_seconds, error, code and
    one for each emotion. A recording that was refused has only its file, error and code. `file` is empty for
    recordings that have no path.
    """
    rows = [_row(outcome) for outcome in sorted(outcomes, key=lambda outcome: outcome.index)]
    emotions = dict.fromkeys(name for row in rows for name in row if name not in _COLUMNS)
    return optional("pandas", "to_dataframe").DataFrame(rows, columns=[*_COLUMNS, *emotions])


def _row(outcome: Outcome) -> dict[str, Any]:
    file = os.fspath(outcome.file) if isinstance(outcome.file, (str, os.PathLike)) else None
    if outcome.error is not None:
        return {"file": file, "error": str(outcome.error), "code": outcome.error.code}
    result = outcome.result
    return {
        "file": file,
        "emotion": result.heard,
        "confidence": result.confidence,
        "speech_seconds": result.speech_seconds,
        **result.all_predictions,
    }
