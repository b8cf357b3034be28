"""The emotions of the product, its models, and the names that other corpora use."""

from __future__ import annotations

EMOTIONS = ("angry", "happy", "neutral", "sad", "nervous", "surprised", "disgusted")

# Each model is a prefix of EMOTIONS, so the label of a clip is one number whatever the model.
MODELS = {"4emotions": 4, "5emotions": 5, "7emotions": 7}

_ALIASES = {
    "anger": "angry",
    "happiness": "happy",
    "joy": "happy",
    "calm": "neutral",
    "sadness": "sad",
    "fear": "nervous",
    "fearful": "nervous",
    "anxious": "nervous",
    "surprise": "surprised",
    "disgust": "disgusted",
}

# The order in which CREMA-D counts its listeners' votes.
CREMAD_VOTES = ("angry", "disgusted", "nervous", "happy", "neutral", "sad")


class UnknownEmotionError(ValueError):
    """A label that is none of the product's emotions nor a known other name for one."""


def emotion_index(name: str, where: str = "a clip") -> int:
    """The number of an emotion by any of its names; `where` is named in the error."""
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    if key not in EMOTIONS:
        known = ", ".join(sorted((*EMOTIONS, *_ALIASES)))
        raise UnknownEmotionError(f"{where}: unknown emotion '{name}' (known: {known})")
    return EMOTIONS.index(key)
