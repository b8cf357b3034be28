"""Assigns whole speakers to training, validation or neither."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from .corpora import Clip

SHARE = 0.15


class SplitError(ValueError):
    """The split names speakers that do not exist, or a speaker is on two sides."""


def _chance(speaker: str) -> float:
    """A number from 0 to 1 that depends on the speaker's name alone."""
    return int(hashlib.sha256(speaker.encode()).hexdigest()[:8], 16) / 2**32


def assign(
    clips: Sequence[Clip],
    validation: Mapping[str, Any] | None = None,
    excluded: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """
    -> for each clip 'train', 'validation' or 'excluded'.

    `excluded`: corpus -> names of speakers. `validation`: corpus -> names, or {"share": 0.15, "never": [names]} for
    a share of its speakers chosen by their names, so that a run can be repeated. Corpora without an entry use SHARE.
    """
    validation, excluded = validation or {}, excluded or {}
    present: dict[str, set[str]] = {}
    for clip in clips:
        present.setdefault(clip.corpus, set()).add(clip.speaker)
    for corpus, names in [*validation.items(), *excluded.items()]:
        named = names.get("never", []) if isinstance(names, dict) else names
        unknown = sorted(set(named) - present.get(corpus, set(named)))
        if unknown:
            raise SplitError(f"split of '{corpus}': no such speaker: {', '.join(unknown)}")
    result: list[str] = []
    for clip in clips:
        wanted = validation.get(clip.corpus, {"share": SHARE})
        if clip.speaker in excluded.get(clip.corpus, ()):
            result.append("excluded")
        elif isinstance(wanted, dict):
            chosen = _chance(clip.speaker) < wanted.get("share", SHARE) and clip.speaker not in wanted.get("never", ())
            result.append("validation" if chosen else "train")
        else:
            result.append("validation" if clip.speaker in wanted else "train")
    check(clips, result)
    return result


def check(clips: Sequence[Clip], sides: Sequence[str]) -> None:
    """No speaker may be on two sides; speakers are identified by name across all corpora."""
    seen: dict[str, str] = {}
    for clip, side in zip(clips, sides):
        other = seen.setdefault(clip.speaker, side)
        if other != side:
            raise SplitError(f"speaker '{clip.speaker}' ({clip.corpus}) is in both '{other}' and '{side}'")
