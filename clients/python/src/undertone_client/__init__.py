"""
Client for the Undertone service, which classifies the emotion in speech from tone of voice.

>>> from undertone_client import EmotionClient
>>> EmotionClient().discrete.emotions("hello.wav").main_emotion
'happy'
"""

from ._progress import Progress
from ._samples import prepare
from .async_client import AsyncEmotionClient
from .async_stream import AsyncEmotionStream
from .client import EmotionClient
from .errors import (
    ConfigError,
    InvalidRequestIdError,
    MissingApiKeyError,
    MissingFileError,
    MissingPackageError,
    PredictionFailedError,
    PredictionTimeoutError,
    RequestFailedError,
    UndertoneError,
    UploadFailedError,
)
from .listings import Model, ModelList, RequestList, RequestSummary, Weights
from .results import AsynchResult, DiscreteResult, Outcome
from .stream import EmotionStream
from .timeline import CONFIDENCE_FLOOR, MIN_SPEECH_SECONDS, NO_SPEECH, Segment, StreamPrediction, TimelineElement

__version__ = "2.0.0"

__all__ = [
    "CONFIDENCE_FLOOR",
    "MIN_SPEECH_SECONDS",
    "NO_SPEECH",
    "AsyncEmotionClient",
    "AsyncEmotionStream",
    "AsynchResult",
    "ConfigError",
    "DiscreteResult",
    "EmotionClient",
    "EmotionStream",
    "InvalidRequestIdError",
    "MissingApiKeyError",
    "MissingFileError",
    "MissingPackageError",
    "Model",
    "ModelList",
    "Outcome",
    "PredictionFailedError",
    "PredictionTimeoutError",
    "Progress",
    "RequestFailedError",
    "RequestList",
    "RequestSummary",
    "Segment",
    "StreamPrediction",
    "TimelineElement",
    "UndertoneError",
    "UploadFailedError",
    "Weights",
    "prepare",
]
