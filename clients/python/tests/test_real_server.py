"""Tests against the real server and model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import undertone_client
from undertone_client import InvalidRequestIdError, PredictionFailedError, PredictionTimeoutError, RequestFailedError

from .support.clients import MIB, scrambled
from .support.real_server import VOICES
from .support.talk import talk, wav

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin
    from .support.real_server import RealServer

FOUR = {"angry", "happy", "neutral", "sad"}
SEVEN = FOUR | {"nervous", "surprised", "disgusted"}


def test_every_model_classifies_a_short_recording(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    four = twin.discrete.emotions(VOICES / "angry-1013.wav")
    seven = twin.discrete.emotions(VOICES / "angry-1013.wav", model="7emotions")
    assert set(four.all_predictions) == FOUR
    assert set(seven.all_predictions) == SEVEN
    assert four.confidence == four.all_predictions[four.main_emotion] == max(four.all_predictions.values())
    assert four.speech_seconds is not None
    assert 1 < four.speech_seconds <= 10


def test_prepared_samples_give_the_same_result_in_every_form(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    prepared = undertone_client.prepare(VOICES / "happy-1039.wav")
    once = twin.discrete.emotions(samples=prepared, sample_rate=44_100)
    again = twin.discrete.emotions(samples=prepared.reshape(-1, 1), sample_rate=44_100.0)
    assert once == again
    assert abs(sum(once.all_predictions.values()) - 1) < 0.01


def test_samples_give_the_same_result_as_the_16_bit_file_they_come_from(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    voice: Any = np.frombuffer(talk(9)[44:], "<i2")
    stereo = np.stack([voice, voice[::-1]], axis=1)
    for whole, rate in ((voice, 16_000), (stereo, 16_000), (voice, 22_050), (np.resize(voice, 198_450), 44_100)):
        channels = 1 if whole.ndim == 1 else 2
        file = twin.discrete.emotions(wav(whole.tobytes(), rate, channels), details=True).to_dict()
        forms: list[Any] = [whole, whole / 32768, (whole / 32768).astype(np.float32)]
        for samples in forms:
            same = twin.discrete.emotions(samples=samples, sample_rate=float(rate), details=True).to_dict()
            assert {**same, "request_id": file["request_id"]} == file


def test_the_error_of_a_refused_recording_has_its_figures(real: RealServer, make_twin: MakeTwin) -> None:
    with pytest.raises(RequestFailedError) as caught:
        make_twin(**real.settings).discrete.emotions(talk(2))
    error = caught.value
    assert error.code == "audio_too_short"
    assert error.status in (400, 422), "422 from servers before 2.0"
    assert error.problem is not None
    assert (error.problem["min_seconds"], error.problem["actual_seconds"]) == (4, 2)
    assert error.request_id


def test_upload_and_emotions_return_one_element_per_five_seconds(
    real: RealServer, make_twin: MakeTwin, tmp_path: Path
) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(talk(62.5))
    twin = make_twin(**real.settings, part_size=MIB)
    request_id = twin.asynch.upload(path)
    result = twin.asynch.emotions(request_id, 60, 1000)
    assert result.request_id == request_id
    assert [element.seconds for element in result.emotions] == list(range(0, 65, 5))
    assert {element.emotion for element in result.emotions} <= FOUR
    twin.asynch.delete(request_id)
    with pytest.raises(InvalidRequestIdError):
        twin.asynch.emotions(request_id)


def test_classify_accepts_model_and_interval_and_is_independent_of_part_size(
    real: RealServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**real.settings)
    settings = {"interval": 1000, "model": "7emotions", "interval_seconds": 10}
    whole = twin.asynch.classify(talk(42), **settings)
    cut = twin.asynch.classify(talk(42), MIB, **settings)
    assert [element.t for element in whole.emotions] == ["00:00", "00:10", "00:20", "00:30", "00:40"]
    assert whole.emotions == cut.emotions


def test_invalid_or_too_short_audio_raises_prediction_failed(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    with pytest.raises(PredictionFailedError) as caught:
        twin.asynch.classify(talk(3), interval=1000)
    assert (caught.value.status, caught.value.code) == (422, "audio_too_short")
    with pytest.raises(PredictionFailedError):
        twin.asynch.classify(scrambled(5000), interval=1000)


def test_polling_times_out_and_the_request_continues(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    request_id = twin.asynch.upload(talk(300))
    with pytest.raises(PredictionTimeoutError):
        twin.asynch.emotions(request_id, 1)
    assert len(twin.asynch.emotions(request_id, 60, 1000).emotions) == 60


def test_models_lists_the_models_of_the_server(real: RealServer, make_twin: MakeTwin) -> None:
    listed = make_twin(**real.settings).models()
    assert [model.id for model in listed.models] == ["4emotions", "5emotions", "7emotions"]
    assert set(listed.models[2].emotions) == SEVEN
    assert listed.weights.id == "research"
