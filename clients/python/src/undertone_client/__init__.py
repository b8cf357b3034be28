"""
Client for the Undertone service, which classifies the emotion in speech from tone of voice.

>>> from undertone_client import EmotionClient
>>> EmotionClient().discrete.emotions("hello.wav").main_emotion
'happy'
"""

from . import webhooks
from ._progress import Progress
from ._samples import prepare
from ._version import __version__
from .async_client import AsyncEmotionClient
from .async_stream import AsyncEmotionStream
from .client import EmotionClient
from .errors import (
    AuthenticationError,
    ConfigError,
    ConnectionFailedError,
    InvalidRequestIdError,
    MissingApiKeyError,
    MissingFileError,
    MissingPackageError,
    NotFoundError,
    PredictionFailedError,
    PredictionTimeoutError,
    RateLimitError,
    RequestFailedError,
    RequestTimeoutError,
    UndertoneError,
    UploadFailedError,
    WebhookVerificationError,
)
from .listings import Model, ModelList, RequestList, RequestStatus, RequestSummary, Token, Weights
from .literals import ChannelMode, Emotion, EmotionOrNoSpeech, Encoding, ErrorCode, ModelName, RequestState, TokenScope
from .results import (
    AsynchResult,
    Classified,
    DetailedAsynchResult,
    DetailedDiscreteResult,
    DiscreteResult,
    Outcome,
    Refused,
)
from .stream import EmotionStream
from .tables import to_dataframe
from .timeline import (
    CONFIDENCE_FLOOR,
    MIN_SPEECH_SECONDS,
    NO_SPEECH,
    DetailedTimelineElement,
    Segment,
    StreamPrediction,
    TimelineElement,
)
from .webhooks import WebhookData, WebhookEvent

__all__ = [
    "CONFIDENCE_FLOOR",
    "MIN_SPEECH_SECONDS",
    "NO_SPEECH",
    "AsyncEmotionClient",
    "AsyncEmotionStream",
    "AsynchResult",
    "AuthenticationError",
    "ChannelMode",
    "Classified",
    "ConfigError",
    "ConnectionFailedError",
    "DetailedAsynchResult",
    "DetailedDiscreteResult",
    "DetailedTimelineElement",
    "DiscreteResult",
    "Emotion",
    "EmotionClient",
    "EmotionOrNoSpeech",
    "EmotionStream",
    "Encoding",
    "ErrorCode",
    "InvalidRequestIdError",
    "MissingApiKeyError",
    "MissingFileError",
    "MissingPackageError",
    "Model",
    "ModelList",
    "ModelName",
    "NotFoundError",
    "Outcome",
    "PredictionFailedError",
    "PredictionTimeoutError",
    "Progress",
    "RateLimitError",
    "Refused",
    "RequestFailedError",
    "RequestList",
    "RequestState",
    "RequestStatus",
    "RequestSummary",
    "RequestTimeoutError",
    "Segment",
    "StreamPrediction",
    "TimelineElement",
    "Token",
    "TokenScope",
    "UndertoneError",
    "UploadFailedError",
    "WebhookData",
    "WebhookEvent",
    "WebhookVerificationError",
    "Weights",
    "__version__",
    "prepare",
    "to_dataframe",
    "webhooks",
]
