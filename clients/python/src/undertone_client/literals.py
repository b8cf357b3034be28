"""The names that the service uses, for type checkers. A newer server may send others."""

from __future__ import annotations

from typing import Literal

#: The models, by the number of their emotions.
ModelName = Literal["4emotions", "5emotions", "7emotions"]

#: Every emotion that a model may have.
Emotion = Literal[
    "angry",
    "disgusted",
    "excited",
    "happy",
    "irritated",
    "nervous",
    "neutral",
    "sad",
    "sleepy",
    "surprised",
]

#: An emotion, or ``no speech`` where an emotion would have no meaning.
EmotionOrNoSpeech = Literal[Emotion, "no speech"]

#: The status of a long recording.
RequestState = Literal["uploading", "queued", "processing", "completed", "failed", "expired"]

#: How the channels of a long recording are analysed.
ChannelMode = Literal["mix", "separate"]

#: The encoding of the samples of a stream.
Encoding = Literal["pcm_s16le", "pcm_f32le", "mulaw", "alaw"]

#: What a token may be used for.
TokenScope = Literal["discrete", "stream", "all"]

#: What a webhook reports.
EventType = Literal["request.completed", "request.failed", "request.expired"]

#: The codes of the service (first), and those of this client.
ErrorCode = Literal[
    "audio_too_long",
    "audio_too_short",
    "bad_request",
    "conflict",
    "file_too_large",
    "forbidden",
    "gone",
    "headers_too_large",
    "internal",
    "invalid_api_key",
    "missing_api_key",
    "method_not_allowed",
    "missing_file",
    "not_found",
    "overloaded",
    "processing_failed",
    "quota_exceeded",
    "rate_limited",
    "request_timeout",
    "result_too_large",
    "sample_rate_too_high",
    "sample_rate_too_low",
    "storage_limit",
    "unknown_model",
    "unreadable_audio",
    "unsupported_media_type",
    "connection_failed",
    "etag_mismatch",
    "file_changed",
    "http_error",
    "invalid_answer",
    "invalid_config",
    "invalid_event",
    "invalid_request_id",
    "invalid_signature",
    "missing_package",
    "other_recording",
    "redirected",
    "stream_ended",
    "timed_out",
    "wrong_time",
]
