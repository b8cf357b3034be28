"""Sends a recording in parts, several at a time, and has the service put them together."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from ._answers import read_json, refusal
from ._failure import Failure, failing_as
from ._log import logger
from ._progress import Progress
from ._retry import ASYNCH_RETRIES, with_retries
from ._source import ASYNCH_MAX_BYTES, Source, too_large
from ._urls import join_url
from .errors import UploadFailedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ._progress import Reporter
    from ._session import Session
    from ._urls import QueryValue

#: A part that makes no progress for this long, or gets no answer, is cut off and sent again.
_PART_TIMEOUT_SECONDS = 120

#: A cancelled upload may take the caller this much more time, no longer.
_CANCEL_TIMEOUT_SECONDS = 5

_OK = 200


@dataclass(frozen=True)
class UploadSettings:
    """How one recording is sent."""

    part_size: int
    max_retries: int
    model: str | None
    interval_seconds: int | None


@dataclass(frozen=True)
class Part:
    """A section of the recording: the bytes from `start` up to `end`. Numbers count from 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class OpenUpload:
    """What the service gives for an upload: its identifiers, and an address for each part."""

    request_id: str
    upload_id: str
    urls: dict[int, str]


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


async def upload_source(session: Session, source: Source, settings: UploadSettings, reporter: Reporter) -> str:
    """Send it all and return the request's identifier, or have the service delete the request."""
    parts = plan_parts(source.size, settings.part_size)
    opened = await _initiate(session, source, len(parts), settings)
    try:
        with failing_as(UploadFailedError, opened.request_id):
            sender = _PartSender(session, source, opened, settings, reporter)
            await sender.send(parts)
            source.verify()
            await _complete(session, sender, parts, settings)
    except GeneratorExit:  # the event loop is gone: nothing can be sent any more
        raise
    except BaseException:  # a cancelled task and Ctrl-C too
        await _cancel(session, opened.request_id)
        raise
    logger.info("Request %s: %d parts sent.", opened.request_id, len(parts))
    return opened.request_id


def is_etag_of(etag: str, md5: str) -> bool:
    """Compare; ETags are quoted, and weakened by some proxies."""
    return etag.strip().removeprefix("W/").strip('"').lower() == md5


class _PartSender:
    """Sends parts, several at a time, and keeps their MD5s."""

    def __init__(
        self, session: Session, source: Source, opened: OpenUpload, settings: UploadSettings, reporter: Reporter
    ) -> None:
        self._session = session
        self._source = source
        self._opened = opened
        self._settings = settings
        self._reporter = reporter
        self._md5s: dict[int, str] = {}
        self._sent: dict[int, int] = {}

    async def send(self, parts: Sequence[Part]) -> None:
        """Send them all; the first one that fails stops the others."""
        waiting = deque(parts)
        count = min(self._session.config.max_threads, len(parts))
        workers = [asyncio.ensure_future(self._work(waiting)) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def completion(self) -> dict[str, Any]:
        parts = [{"PartNumber": number, "ETag": f'"{md5}"'} for number, md5 in sorted(self._md5s.items())]
        return {"request_id": self._opened.request_id, "upload_id": self._opened.upload_id, "parts": parts}

    async def _work(self, waiting: deque[Part]) -> None:
        while waiting:
            await self._send_one(waiting.popleft())

    async def _send_one(self, part: Part) -> None:
        self._md5s[part.number] = await with_retries(
            f"Part {part.number}", self._settings.max_retries, ASYNCH_RETRIES, lambda _retry: self._attempt(part)
        )

    async def _attempt(self, part: Part) -> str:
        """Send one part; return its MD5 when it is acknowledged as what was sent."""
        url = self._opened.urls[part.number]
        md5 = hashlib.md5(usedforsecurity=False)
        headers = {"content-length": str(part.end - part.start), "content-type": "application/octet-stream"}
        answer = await self._session.send(
            "PUT", url, timeout=_PART_TIMEOUT_SECONDS, headers=headers, content=self._body(part, md5)
        )
        if answer.status_code != _OK:
            raise refusal(answer, url)
        self._source.verify()
        etag = answer.headers.get("etag")
        # One without an ETag (some proxies drop it) is accepted for now: the service compares our MD5s with
        # what it has before it accepts the whole.
        if etag is not None and not is_etag_of(etag, md5.hexdigest()):
            raise Failure(f"Part {part.number} arrived damaged.", status=_OK, code="etag_mismatch")
        return md5.hexdigest()

    async def _body(self, part: Part, md5: Any) -> AsyncIterator[bytes]:
        pieces = self._source.pieces(part.start, part.end)
        self._sent[part.number] = 0

        def read() -> bytes | None:
            piece = next(pieces, None)
            md5.update(piece or b"")
            return piece

        while (piece := await asyncio.to_thread(read)) is not None:
            yield piece
            self._sent[part.number] += len(piece)
            total, size = sum(self._sent.values()), self._source.size
            self._reporter.report(Progress("uploading", total / size, self._opened.request_id, total, size))


async def _initiate(session: Session, source: Source, count: int, settings: UploadSettings) -> OpenUpload:
    base = session.config.asynch_url
    query: dict[str, QueryValue] = {
        "file_name": source.name,
        "part_count": count,
        "model": settings.model,
        "interval": settings.interval_seconds,
    }
    url = join_url(base, "/upload/initiate", query)
    answer = await session.call_with_retries("Starting the upload", "POST", url)
    opened = read_json(answer, url, lambda value: _read_opened(value, base))
    if set(opened.urls) != set(range(1, count + 1)):
        raise Failure("The service did not give one address for each part.", code="invalid_answer")
    return opened


def _read_opened(value: dict[str, Any], base: str) -> OpenUpload:
    try:
        urls = {int(entry["part_number"]): str(httpx.URL(base).join(entry["url"])) for entry in value["presigned_urls"]}
    except httpx.InvalidURL as error:
        raise ValueError from error
    return OpenUpload(str(value["request_id"]), str(value["upload_id"]), urls)


async def _complete(session: Session, sender: _PartSender, parts: Sequence[Part], settings: UploadSettings) -> None:
    """Complete; parts that the service names as missing or wrong are sent once more and it is asked again."""
    url = join_url(session.config.asynch_url, "/upload/complete")
    headers = {"content-type": "application/json"}
    for rounds_left in range(settings.max_retries, -1, -1):
        body = json.dumps(sender.completion()).encode()
        try:
            answer = await session.call_with_retries(
                "Completing the upload", "POST", url, headers=headers, content=body
            )
        except Failure as failure:
            problem = failure.details.get("problem") or {}
            named = {*problem.get("missing_parts", ()), *problem.get("wrong_parts", ())}
            again = [part for part in parts if part.number in named]
            if not again or rounds_left == 0:
                raise
            logger.warning("Parts %s did not arrive whole: sending them again.", sorted(named))
        else:
            read_json(answer, url, lambda value: value["status"])
            return
        await sender.send(again)


async def _cancel(session: Session, request_id: str) -> None:
    """Delete the request as well as possible: it expires by itself in any case."""
    url = join_url(session.config.asynch_url, f"/requests/{request_id}")
    try:
        await session.call("DELETE", url, timeout=_CANCEL_TIMEOUT_SECONDS)
    except Failure as failure:
        logger.warning("Request %s could not be deleted: %s", request_id, failure.message)
