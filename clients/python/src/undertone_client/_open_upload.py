"""Starts an upload, or resumes an interrupted one."""

from __future__ import annotations

import asyncio
import hashlib
import math
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx

from ._checks import CHANNEL_MODES, choice_problem, label_problem, model_problem, number_problem, url_problem
from ._failure import Failure, failing_as
from ._log import logger
from ._poll import error_class_of
from ._responses import read_json
from ._source import ASYNCH_MAX_BYTES, Source, too_large
from ._urls import join_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._session import Session
    from ._urls import QueryValue


@dataclass(frozen=True)
class RecordingSettings:
    """How the service should classify a recording, whether uploaded in parts or in one request."""

    model: str | None
    interval_seconds: int | None
    channels: str | None
    label: str | None
    webhook_url: str | None

    def query(self, name: str) -> dict[str, QueryValue]:
        return {
            "file_name": name,
            "model": self.model,
            "interval": self.interval_seconds,
            "channels": self.channels,
            "label": self.label,
            "webhook_url": self.webhook_url,
        }

    def problems(self) -> list[str | None]:
        interval, url = self.interval_seconds, self.webhook_url
        return [
            model_problem(self.model),
            None if interval is None else number_problem("interval_seconds", interval),
            choice_problem("channels", self.channels, CHANNEL_MODES),
            label_problem(self.label),
            None if url is None else url_problem("webhook_url", url),
        ]


@dataclass(frozen=True)
class UploadSettings:
    """How a recording is uploaded."""

    recording: RecordingSettings
    part_size: int
    max_retries: int
    resume: str | None


@dataclass(frozen=True)
class Part:
    """The bytes of a recording from `start` up to `end`. Part numbers start at 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class PartUrl:
    """The presigned URL of a part, and its expiry in Unix time."""

    url: str
    expires_at: float


@dataclass(frozen=True)
class OpenUpload:
    """An upload that exists on the service, with everything needed to send and complete it."""

    request_id: str
    upload_id: str
    parts: list[Part]
    #: URLs of the parts still to be sent.
    urls: Mapping[int, PartUrl]
    #: ETags of the parts already stored.
    etags: Mapping[int, str]


@dataclass(frozen=True)
class StoredPart:
    """A part already stored on the service."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True)
class UploadStatus:
    """The stored parts of an upload, and the URLs of the missing ones."""

    status: str
    upload_id: str
    part_count: int
    parts: list[StoredPart]
    urls: Mapping[int, PartUrl]


def plan_parts(size: int, part_size: int) -> list[Part]:
    """
    Split a recording into parts of `part_size` bytes; the last part may be shorter.

    The smallest part size splits the largest file into 1,024 parts, far below the service's limit.
    """
    if size == 0:
        raise Failure("The recording is empty.", code="audio_too_short")
    if size > ASYNCH_MAX_BYTES:
        raise too_large(ASYNCH_MAX_BYTES)
    starts = range(0, size, part_size)
    return [Part(i + 1, start, min(start + part_size, size)) for i, start in enumerate(starts)]


def is_etag_of(etag: str, md5: str) -> bool:
    """Compare an ETag, which is quoted and which some proxies make weak, with an MD5."""
    return etag.strip().removeprefix("W/").strip('"').lower() == md5


def idempotency_key() -> dict[str, str]:
    """Return a header that makes a retried call create one request, not two."""
    return {"idempotency-key": str(uuid.uuid4())}


async def initiate(session: Session, source: Source, settings: UploadSettings) -> OpenUpload:
    base = session.config.asynch_url
    parts = plan_parts(source.size, settings.part_size)
    query = {"part_count": len(parts), "file_size": source.size, **settings.recording.query(source.name)}
    url = join_url(base, "/upload/initiate", query)
    response = await session.call_with_retries("Starting the upload", "POST", url, headers=idempotency_key())

    def parse(value: dict[str, Any]) -> OpenUpload:
        return OpenUpload(str(value["request_id"]), str(value["upload_id"]), parts, _part_urls(value, base), {})

    opened = read_json(response, url, parse)
    if set(opened.urls) != {part.number for part in parts}:
        raise Failure("The service did not return one URL per part.", code="invalid_answer")
    return opened


async def resume_upload(session: Session, source: Source, settings: UploadSettings) -> OpenUpload | None:
    """Resume an interrupted upload. None: it is already complete."""
    request_id = str(settings.resume)
    with failing_as(error_class_of, request_id):
        known = await fetch_status(session, request_id)
    if known.status != "uploading":
        return None
    original = original_part_size(source.size, known.part_count, known.parts, settings.part_size)
    parts = plan_parts(source.size, original) if -(-source.size // original) == known.part_count else []
    if not parts or not await asyncio.to_thread(_match, source, parts, known.parts):
        raise Failure(
            "The stored parts belong to another recording. Give the same file, or upload this one without resume.",
            code="other_recording",
            request_id=request_id,
        )
    logger.info("Request %s: %d of %d parts are already stored.", request_id, len(known.parts), len(parts))
    etags = {part.number: part.etag for part in known.parts}
    return OpenUpload(request_id, known.upload_id, parts, known.urls, etags)


async def fetch_status(session: Session, request_id: str) -> UploadStatus:
    """Fetch the stored parts, and fresh URLs for the missing ones."""
    base = session.config.asynch_url
    url = join_url(base, f"/upload/{request_id}")
    response = await session.call_with_retries("Fetching the upload status", "GET", url)

    def parse(value: dict[str, Any]) -> UploadStatus:
        stored = [StoredPart(int(item["PartNumber"]), str(item["ETag"]), int(item["bytes"])) for item in value["parts"]]
        status, upload_id = str(value["status"]), str(value["upload_id"])
        return UploadStatus(status, upload_id, int(value["part_count"]), stored, _part_urls(value, base))

    return read_json(response, url, parse)


def original_part_size(size: int, count: int, stored: list[StoredPart], preferred: int) -> int:
    """Infer the part size of an interrupted upload from its stored parts."""
    whole = next((part.size for part in stored if part.number < count), None)
    if whole is not None:
        return max(1, whole)
    if stored and count > 1:
        return max(1, (size - stored[0].size) // (count - 1))
    return preferred if -(-size // preferred) == count else max(1, -(-size // count))


def _match(source: Source, parts: list[Part], stored: list[StoredPart]) -> bool:
    """Compare sizes and MD5s of the stored parts with the recording."""
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


def _part_urls(value: dict[str, Any], base: str) -> dict[int, PartUrl]:
    try:
        return {
            int(entry["part_number"]): PartUrl(
                str(httpx.URL(base).join(entry["url"])), _expiry(entry.get("expires_at"))
            )
            for entry in value["presigned_urls"]
        }
    except httpx.InvalidURL as error:
        raise ValueError from error


def _expiry(text: str | None) -> float:
    # fromisoformat does not accept Z before Python 3.11.
    return math.inf if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
