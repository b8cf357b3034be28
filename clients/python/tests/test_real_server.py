"""Against the real server and the real model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import undertone_client
from undertone_client import InvalidRequestIdError, PredictionFailedError, PredictionTimeoutError, RequestFailedError

from .support.clients import MIB, scrambled
from .support.real_server import VOICES
from .support.talk import talk

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeTwin
    from .support.real_server import RealServer

FOUR = {"angry", "happy", "neutral", "sad"}
SEVEN = FOUR | {"nervous", "surprised", "disgusted"}


def test_a_short_recording_gets_its_emotion_with_any_model(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    four = twin.discrete.emotions(VOICES / "angry-1013.wav")
    seven = twin.discrete.emotions(VOICES / "angry-1013.wav", model="7emotions")
    assert set(four.all_predictions) == FOUR
    assert set(seven.all_predictions) == SEVEN
    assert four.confidence == four.all_predictions[four.main_emotion] == max(four.all_predictions.values())
    assert four.speech_seconds is not None
    assert 1 < four.speech_seconds <= 10


def test_prepared_samples_get_the_same_answer_however_they_are_given(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    prepared = undertone_client.prepare(VOICES / "happy-1039.wav")
    once = twin.discrete.emotions(samples=prepared, sample_rate=44_100)
    again = twin.discrete.emotions(samples=prepared.reshape(-1, 1), sample_rate=44_100.0)
    assert once == again
    assert abs(sum(once.all_predictions.values()) - 1) < 0.01


def test_a_refused_recording_is_explained_with_its_figures(real: RealServer, make_twin: MakeTwin) -> None:
    with pytest.raises(RequestFailedError) as caught:
        make_twin(**real.settings).discrete.emotions(talk(2))
    error = caught.value
    assert error.code == "audio_too_short"
    assert error.status in (400, 422), "422 from servers before 2.0"
    assert error.problem is not None
    assert (error.problem["min_seconds"], error.problem["actual_seconds"]) == (4, 2)
    assert error.request_id


def test_a_long_file_goes_through_upload_and_emotions_one_element_for_each_five_seconds(
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


def test_classify_takes_a_model_and_a_step_of_its_own_and_parts_make_no_difference(
    real: RealServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**real.settings)
    settings = {"interval": 1000, "model": "7emotions", "interval_seconds": 10}
    whole = twin.asynch.classify(talk(42), **settings)
    cut = twin.asynch.classify(talk(42), MIB, **settings)
    assert [element.t for element in whole.emotions] == ["00:00", "00:10", "00:20", "00:30", "00:40"]
    assert whole.emotions == cut.emotions


def test_what_is_no_audio_or_too_short_is_a_failed_prediction_that_says_so(
    real: RealServer, make_twin: MakeTwin
) -> None:
    twin = make_twin(**real.settings)
    with pytest.raises(PredictionFailedError) as caught:
        twin.asynch.classify(talk(3), interval=1000)
    assert (caught.value.status, caught.value.code) == (422, "audio_too_short")
    with pytest.raises(PredictionFailedError):
        twin.asynch.classify(scrambled(5000), interval=1000)


def test_too_few_tries_time_out_and_the_request_goes_on(real: RealServer, make_twin: MakeTwin) -> None:
    twin = make_twin(**real.settings)
    request_id = twin.asynch.upload(talk(300))
    with pytest.raises(PredictionTimeoutError):
        twin.asynch.emotions(request_id, 1)
    assert len(twin.asynch.emotions(request_id, 60, 1000).emotions) == 60


def test_models_lists_what_the_server_offers(real: RealServer, make_twin: MakeTwin) -> None:
    listed = make_twin(**real.settings).models()
    assert [model.id for model in listed.models] == ["4emotions", "5emotions", "7emotions"]
    assert set(listed.models[2].emotions) == SEVEN
    assert listed.weights.id == "research"
