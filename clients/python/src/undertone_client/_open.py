"""Begins an upload, or takes up one that was interrupted."""

from __future__ import annotations

import asyncio
import hashlib
import math
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx

from ._answers import read_json
from ._failure import Failure, failing_as
from ._log import logger
from ._poll import class_of_refusal
from ._source import ASYNCH_MAX_BYTES, Source, too_large
from ._urls import join_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._session import Session
    from ._urls import QueryValue


@dataclass(frozen=True)
class RecordingSettings:
    """What is said about a recording, however it is sent."""

    model: str | None
    interval_seconds: int | None
    channels: str | None
    label: str | None
    webhook_url: str | None

    def query(self, name: str) -> dict[str, QueryValue]:
        """Give the service's query."""
        return {
            "file_name": name,
            "model": self.model,
            "interval": self.interval_seconds,
            "channels": self.channels,
            "label": self.label,
            "webhook_url": self.webhook_url,
        }


@dataclass(frozen=True)
class UploadSettings:
    """How one recording is sent."""

    recording: RecordingSettings
    part_size: int
    max_retries: int
    resume: str | None


@dataclass(frozen=True)
class Part:
    """A section of the recording: the bytes from `start` up to `end`. Numbers count from 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Address:
    """Where a part goes, and until when, in seconds since 1970."""

    url: str
    expires_at: float


@dataclass(frozen=True)
class OpenUpload:
    """An upload that the service knows: its parts, and what is needed to send and complete them."""

    request_id: str
    upload_id: str
    parts: list[Part]
    #: Where the parts go that are still to be sent.
    urls: Mapping[int, Address]
    #: The ETags of the parts that have arrived before.
    etags: Mapping[int, str]


@dataclass(frozen=True)
class StoredPart:
    """A part that has arrived."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True)
class Arrived:
    """What the service has of an upload, and where the rest goes."""

    status: str
    upload_id: str
    part_count: int
    parts: list[StoredPart]
    urls: Mapping[int, Address]


def plan_parts(size: int, part_size: int) -> list[Part]:
    """
    Cut a recording into parts of `part_size` bytes; the last one is what is left.

    The smallest part the checks accept makes 1,024 parts of the largest file, far below the service's limit.
    """
    if size == 0:
        raise Failure("The recording is empty.", code="audio_too_short")
    if size > ASYNCH_MAX_BYTES:
        raise too_large(ASYNCH_MAX_BYTES)
    starts = range(0, size, part_size)
    return [Part(i + 1, start, min(start + part_size, size)) for i, start in enumerate(starts)]


def is_etag_of(etag: str, md5: str) -> bool:
    """Compare; ETags are quoted, and weakened by some proxies."""
    return etag.strip().removeprefix("W/").strip('"').lower() == md5


def idempotency_key() -> dict[str, str]:
    """Make a header: with the same key a call that is made again, because its answer was lost, is the same request."""
    return {"idempotency-key": str(uuid.uuid4())}


async def initiate(session: Session, source: Source, settings: UploadSettings) -> OpenUpload:
    """Begin an upload."""
    base = session.config.asynch_url
    parts = plan_parts(source.size, settings.part_size)
    url = join_url(base, "/upload/initiate", {"part_count": len(parts), **settings.recording.query(source.name)})
    answer = await session.call_with_retries("Starting the upload", "POST", url, headers=idempotency_key())

    def parse(value: dict[str, Any]) -> OpenUpload:
        return OpenUpload(str(value["request_id"]), str(value["upload_id"]), parts, _addresses(value, base), {})

    opened = read_json(answer, url, parse)
    if set(opened.urls) != {part.number for part in parts}:
        raise Failure("The service did not give one address for each part.", code="invalid_answer")
    return opened


async def continue_upload(session: Session, source: Source, settings: UploadSettings) -> OpenUpload | None:
    """Take up an interrupted upload. None: all of it has arrived, and it was completed."""
    request_id = str(settings.resume)
    with failing_as(class_of_refusal, request_id):
        known = await ask_what_arrived(session, request_id)
    if known.status != "uploading":
        return None
    original = original_part_size(source.size, known.part_count, known.parts, settings.part_size)
    parts = plan_parts(source.size, original) if -(-source.size // original) == known.part_count else []
    if not parts or not await asyncio.to_thread(_are_of, source, parts, known.parts):
        raise Failure(
            "What has arrived is not a part of this recording. Give the same file, or upload this one without resume.",
            code="other_recording",
            request_id=request_id,
        )
    logger.info("Request %s: %d of %d parts are there already.", request_id, len(known.parts), len(parts))
    etags = {part.number: part.etag for part in known.parts}
    return OpenUpload(request_id, known.upload_id, parts, known.urls, etags)


async def ask_what_arrived(session: Session, request_id: str) -> Arrived:
    """Ask for the parts that have arrived, and for new addresses of the others."""
    base = session.config.asynch_url
    url = join_url(base, f"/upload/{request_id}")
    answer = await session.call_with_retries("Asking what has arrived", "GET", url)

    def parse(value: dict[str, Any]) -> Arrived:
        stored = [StoredPart(int(item["PartNumber"]), str(item["ETag"]), int(item["bytes"])) for item in value["parts"]]
        status, upload_id = str(value["status"]), str(value["upload_id"])
        return Arrived(status, upload_id, int(value["part_count"]), stored, _addresses(value, base))

    return read_json(answer, url, parse)


def original_part_size(size: int, count: int, stored: list[StoredPart], preferred: int) -> int:
    """Give the size the recording was cut by, as what has arrived tells it."""
    whole = next((part.size for part in stored if part.number < count), None)
    if whole is not None:
        return max(1, whole)
    if stored and count > 1:
        return max(1, (size - stored[0].size) // (count - 1))
    return preferred if -(-size // preferred) == count else max(1, -(-size // count))


def _are_of(source: Source, parts: list[Part], stored: list[StoredPart]) -> bool:
    """Compare what has arrived with the recording."""
    by_number = {part.number: part for part in parts}
    for known in stored:
        part = by_number.get(known.number)
        if part is None or part.end - part.start != known.size:
            return False
        md5 = hashlib.md5(usedforsecurity=False)
        for piece in source.pieces(part.start, part.end):
            md5.update(piece)
        if not is_etag_of(known.etag, md5.hexdigest()):
            return False
    return True


def _addresses(value: dict[str, Any], base: str) -> dict[int, Address]:
    try:
        return {
            int(entry["part_number"]): Address(
                str(httpx.URL(base).join(entry["url"])), _expiry(entry.get("expires_at"))
            )
            for entry in value["presigned_urls"]
        }
    except httpx.InvalidURL as error:
        raise ValueError from error


def _expiry(text: str | None) -> float:
    # Before 3.11 Python does not know that Z is UTC.
    return math.inf if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
