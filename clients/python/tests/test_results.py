"""Results: typed, as dicts, as tables and drawn."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from undertone_client import (
    AsynchResult,
    Classified,
    DiscreteResult,
    MissingPackageError,
    ModelList,
    Outcome,
    Refused,
    RequestFailedError,
    TimelineElement,
    to_dataframe,
)
from undertone_client._drawing import MAX_BLOCKS, blocks_of

from .support.flaky_server import DISCRETE_ANSWER, MODELS, TIMELINE

RESULT = {
    "request_id": "0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10",
    "status": "completed",
    "emotions": [
        {"t": "00:00", "emotion": "happy", "confidence": 0.9},
        {"t": "00:05", "emotion": "sad", "confidence": 0.3},
        {"t": "00:10", "emotion": "happy", "confidence": 0.6},
    ],
}


PREDICTIONS = {"angry": 0.8, "happy": 0.1, "neutral": 0.05, "sad": 0.05}
FLAT = dict.fromkeys(PREDICTIONS, 0.25)


def step(start: int, channel: int, emotion: str, confidence: float, speech_seconds: float) -> dict[str, Any]:
    return {
        "t": f"00:{start:02d}",
        "channel": channel,
        "emotion": emotion,
        "confidence": confidence,
        "start": start,
        "end": start + 5,
        "speech_seconds": speech_seconds,
        "speech": speech_seconds >= 0.5,
        "all_predictions": PREDICTIONS if speech_seconds else FLAT,
    }


#: A call: channel 0 is angry and then silent, channel 1 is silent and then angry.
CALL = {
    "request_id": "0b6f7a52-93a1-4f0e-8d0e-2f4f8f1c9d10",
    "status": "completed",
    "emotions": [
        step(0, 0, "angry", 0.8, 4.5),
        step(0, 1, "sad", 0.25, 0),
        step(5, 0, "sad", 0.25, 0),
        step(5, 1, "angry", 0.8, 5),
    ],
    "model": "4emotions",
    "weights": "research",
    "duration_seconds": 10,
    "expires_at": "2026-01-02T00:00:00.000Z",
    "segments": [
        {"channel": 0, "start": 0, "end": 5, "emotion": "angry", "confidence": 0.8, "speech_seconds": 4.5},
        {"channel": 0, "start": 5, "end": 10, "emotion": None, "confidence": 0.25, "speech_seconds": 0},
    ],
}


class Tags(HTMLParser):
    """Parse HTML and require that every tag is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.mark.parametrize(
    ("kind", "value"),
    [(DiscreteResult, DISCRETE_ANSWER), (AsynchResult, RESULT), (AsynchResult, CALL), (ModelList, MODELS)],
)
def test_results_convert_to_dicts_and_can_be_copied_and_pickled(kind: Any, value: dict[str, Any]) -> None:
    result = kind.from_dict(value)
    assert result.to_dict() == value
    assert copy.deepcopy(result) == result == pickle.loads(pickle.dumps(result))
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.status = "other"


def test_speech_seconds_are_kept_if_the_server_sent_them() -> None:
    value = {**DISCRETE_ANSWER, "speech_seconds": 0}
    assert DiscreteResult.from_dict(value).speech_seconds == 0
    assert DiscreteResult.from_dict(value).to_dict() == value
    assert DiscreteResult.from_dict(DISCRETE_ANSWER).speech_seconds is None


def test_timeline_elements_have_their_time_in_seconds() -> None:
    elements = AsynchResult.from_dict({**RESULT, "emotions": TIMELINE}).emotions
    assert [element.seconds for element in elements] == [0, 5, 6010]


def test_tables_have_one_row_per_step_or_emotion() -> None:
    steps = AsynchResult.from_dict(RESULT).to_dataframe()
    assert list(steps.columns) == ["t", "seconds", "emotion", "confidence"]
    assert list(steps["seconds"]) == [0, 5, 10]
    emotions = DiscreteResult.from_dict(DISCRETE_ANSWER).to_dataframe()
    assert emotions.iloc[0].to_dict() == {"emotion": "happy", "confidence": 0.7}
    assert len(emotions) == 4


def test_silence_is_no_speech_and_never_an_emotion() -> None:
    call = AsynchResult.from_dict(CALL)
    assert [element.heard for element in call.emotions] == ["angry", "no speech", "no speech", "angry"]
    assert call.shares() == {"angry": 0.5, "no speech": 0.5}
    assert [segment.heard for segment in call.segments or ()] == ["angry", "no speech"]
    table = call.to_dataframe()
    assert list(table.columns) == [
        *("t", "seconds", "emotion", "confidence", "channel", "start", "end", "speech_seconds", "speech"),
        *PREDICTIONS,
    ]
    assert dict(table.emotion.value_counts()) == {"angry": 2, "no speech": 2}
    assert table.loc[table.channel == 1, "angry"].tolist() == [0.25, 0.8]
    silent = DiscreteResult.from_dict({**DISCRETE_ANSWER, "speech_seconds": 0.4})
    assert silent.heard == "no speech"
    assert "No speech" in Tags(silent._repr_html_()).text
    assert DiscreteResult.from_dict(DISCRETE_ANSWER).heard == "happy"


def test_each_channel_is_drawn_separately() -> None:
    call = AsynchResult.from_dict(CALL)
    drawing = Tags(call._repr_html_())
    (svg,) = drawing.named("svg")
    assert "50% angry, 50% no speech" in str(svg["aria-label"])
    assert "sad" not in drawing.text
    assert len({rect["y"] for rect in drawing.named("rect")}) == 4, "each channel has separate rows"
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    axes = call.plot()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["0: angry", "0: no speech", "1: angry", "1: no speech"]
    assert axes.get_xlim() == (0, 10)
    importlib.import_module("matplotlib.pyplot").close("all")


def test_a_timeline_draws_itself_in_a_notebook() -> None:
    drawing = Tags(AsynchResult.from_dict(RESULT)._repr_html_())
    (svg,) = drawing.named("svg")
    assert svg["role"] == "img"
    assert "67% happy, 33% sad" in str(svg["aria-label"])
    rects = drawing.named("rect")
    sure = [rect for rect in rects if rect["fill"] != "none"]
    unsure = [rect for rect in rects if rect["fill"] == "none"]
    assert (len(sure), len(unsure)) == (2, 1)
    assert len({rect["y"] for rect in sure + unsure}) == 2, "each emotion has its own row"
    for words in ("happy", "sad", "00:05 sad 0.30", "00:15", "not reliable"):
        assert words in drawing.text
    assert not {"script", "link", "img", "style"} & {tag for tag, _ in drawing.tags}


def test_a_short_result_draws_bars_in_a_notebook() -> None:
    drawing = Tags(DiscreteResult.from_dict(DISCRETE_ANSWER)._repr_html_())
    widths = [float(str(rect["width"])) for rect in drawing.named("rect")]
    assert widths == [210, 30, 30, 30]
    assert "Main emotion: happy, confidence 0.70." in drawing.text


def test_drawings_escape_hostile_responses() -> None:
    hostile = '"><script>alert(1)</script>'
    step = {"t": "00:00", "emotion": hostile, "confidence": 1}
    drawings = [
        AsynchResult.from_dict({**RESULT, "request_id": hostile, "emotions": emotions})._repr_html_()
        for emotions in ([step], [])
    ]
    answer = {"main_emotion": hostile, "confidence": 1, "all_predictions": {hostile: 1}}
    drawings.append(DiscreteResult.from_dict(answer)._repr_html_())
    for html in drawings:
        assert not Tags(html).named("script")
        assert hostile not in html


def test_long_timelines_are_drawn_with_a_limited_number_of_blocks() -> None:
    elements = tuple(
        TimelineElement(f"{i * 5 // 60:02d}:{i * 5 % 60:02d}", "sad" if i % 3 else "angry", 0.5) for i in range(26_844)
    )
    result = AsynchResult("id", "completed", elements)
    blocks = blocks_of(result.emotions)
    assert len(blocks) <= MAX_BLOCKS
    assert (blocks[0].start, blocks[-1].end) == (0, 26_844 * 5)
    assert all(one.end == other.start for one, other in zip(blocks, blocks[1:]))
    assert len(result._repr_html_()) < 200_000


def test_matplotlib_draws_on_new_or_given_axes() -> None:
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    result = AsynchResult.from_dict(RESULT)
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["happy", "sad"]
    assert axes.get_xlim() == (0, 15)
    assert len(axes.collections) == 3
    axes.figure.canvas.draw()
    _, given = pyplot.subplots()
    assert result.plot(given) is given
    assert AsynchResult("id", "completed", ()).plot() is not None
    pyplot.close("all")


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("pandas", lambda: AsynchResult.from_dict(RESULT).to_dataframe()),
        ("pandas", lambda: DiscreteResult.from_dict(DISCRETE_ANSWER).to_dataframe()),
        ("matplotlib", lambda: AsynchResult.from_dict(RESULT).plot()),
    ],
)
def test_a_missing_package_error_has_the_install_command(
    package: str, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name.split(".", maxsplit=1)[0] == package:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingPackageError, match=f"pip install {package}") as caught:
        use()
    assert isinstance(caught.value, ImportError)


def test_a_table_of_a_batch_has_a_row_per_recording_in_its_order() -> None:
    speech = DiscreteResult.from_dict({**DISCRETE_ANSWER, "speech_seconds": 3.5})
    silence = DiscreteResult.from_dict({**DISCRETE_ANSWER, "speech_seconds": 0})
    error = RequestFailedError("It has 2 seconds.", code="audio_too_short")
    outcomes: list[Outcome] = [
        Refused("short.wav", error, index=2),
        Classified(Path("a/speech.wav"), speech, index=0),
        Classified(b"RIFF", silence, index=1),
    ]
    table = to_dataframe(iter(outcomes))
    assert list(table.columns) == [
        *("file", "emotion", "confidence", "speech_seconds", "error", "code"),
        *("angry", "happy", "neutral", "sad"),
    ]
    assert table["file"].to_list()[::2] == ["a/speech.wav", "short.wav"]
    assert table["emotion"].to_list()[:2] == ["happy", "no speech"]
    assert table["confidence"].to_list()[:2] == [0.7, 0.7]
    assert table["happy"].isna().to_list() == [False, False, True]
    assert table["file"].isna().to_list() == [False, True, False]
    assert (table["error"].to_list()[2], table["code"].to_list()[2]) == ("It has 2 seconds.", "audio_too_short")
    assert list(to_dataframe([]).columns)[:2] == ["file", "emotion"]
