"""Uploads a recording, in concurrent parts or in one request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Callable

from ._deadline import time_limit
from ._failure import Failure, failing_as
from ._log import logger
from ._open_upload import (
    OpenUpload,
    Part,
    RecordingSettings,
    UploadSettings,
    fetch_status,
    idempotency_key,
    initiate,
    is_etag_of,
    plan_parts,
    resume_upload,
)
from ._progress import Progress
from ._responses import error_response, read_json
from ._retry import ASYNCH_RETRIES, is_retryable, with_retries
from ._urls import join_url
from .errors import UploadFailedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import httpx

    from ._progress import Reporter
    from ._session import Session
    from ._source import Source

#: Inactivity timeout of a part; it is then retried.
_PART_TIMEOUT_SECONDS = 120

#: A URL that expires sooner than this is renewed before it is used.
_EXPIRY_MARGIN_SECONDS = 60

#: Maximum time to delete a failed upload, while the caller waits for the error.
_DELETE_TIMEOUT_SECONDS = 5

_OK = 200


async def upload_source(session: Session, source: Source, settings: UploadSettings, reporter: Reporter) -> str:
    """
    Upload all parts and return the request_id.

    An interrupted upload stays on the service and can be resumed; one that can never succeed is deleted.
    """
    opened = await (initiate if settings.resume is None else resume_upload)(session, source, settings)
    if opened is None:
        return str(settings.resume)
    try:
        with failing_as(UploadFailedError, opened.request_id):
            try:
                sender = _PartSender(session, source, opened, settings, reporter)
                await sender.send([part for part in opened.parts if part.number not in opened.etags])
                source.verify()
                await _complete(session, sender, opened.parts, settings)
            except Failure as failure:
                if not is_retryable(failure, ASYNCH_RETRIES):
                    await _delete(session, opened.request_id)
                    raise
                _log_how_to_resume(opened.request_id)
                raise
    except (asyncio.CancelledError, KeyboardInterrupt):
        _log_how_to_resume(opened.request_id)
        raise
    logger.info("Request %s: %d parts sent.", opened.request_id, len(opened.parts))
    return opened.request_id


async def submit_source(
    session: Session, source: Source, recording: RecordingSettings, max_retries: int, reporter: Reporter
) -> str:
    """Send a recording in one request. If it fails, the service keeps nothing."""
    (whole,) = plan_parts(source.size, source.size or 1)
    url = join_url(session.config.asynch_url, "/requests", recording.query(source.name))
    headers = {**_body_headers(whole), **idempotency_key()}

    def report(sent: int) -> None:
        reporter.report(Progress("uploading", sent / source.size, "", sent, source.size))

    async def attempt(_retry: int) -> httpx.Response:
        content = _body(source, whole, hashlib.md5(usedforsecurity=False), report)
        response = await session.call("POST", url, timeout=_PART_TIMEOUT_SECONDS, headers=headers, content=content)
        source.verify()
        return response

    response = await with_retries("Sending the recording", max_retries, ASYNCH_RETRIES, attempt)
    return read_json(response, url, lambda value: str(value["request_id"]))


def _log_how_to_resume(request_id: str) -> None:
    logger.warning(
        "The upload was interrupted. Continue it within 24 hours with asynch.upload(..., resume=%r), "
        "or delete it with asynch.delete.",
        request_id,
    )


def _body_headers(part: Part) -> dict[str, str]:
    return {"content-length": str(part.end - part.start), "content-type": "application/octet-stream"}


async def _body(source: Source, part: Part, md5: Any, on_sent: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Read a part while it is sent, hash it, and report the bytes sent."""
    pieces = source.pieces(part.start, part.end)
    sent = 0

    def read() -> bytes | None:
        piece = next(pieces, None)
        md5.update(piece or b"")
        return piece

    while (piece := await asyncio.to_thread(read)) is not None:
        yield piece
        sent += len(piece)
        on_sent(sent)


class _PartSender:
    """Sends parts concurrently and collects their ETags."""

    def __init__(
        self, session: Session, source: Source, opened: OpenUpload, settings: UploadSettings, reporter: Reporter
    ) -> None:
        self._session = session
        self._source = source
        self._opened = opened
        self._settings = settings
        self._reporter = reporter
        self._etags: dict[int, str] = dict(opened.etags)
        self._urls = opened.urls
        self._sent: dict[int, int] = {}
        for part in opened.parts:
            if part.number in opened.etags:
                self._report(part, part.end - part.start)

    async def send(self, parts: Sequence[Part]) -> None:
        """Send parts; the first failure cancels the others."""
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
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in sorted(self._etags.items())]
        return {"request_id": self._opened.request_id, "upload_id": self._opened.upload_id, "parts": parts}

    async def _work(self, waiting: deque[Part]) -> None:
        while waiting:
            await self._send_one(waiting.popleft())

    async def _send_one(self, part: Part) -> None:
        self._etags[part.number] = await with_retries(
            f"Part {part.number}", self._settings.max_retries, ASYNCH_RETRIES, lambda _retry: self._attempt(part)
        )

    async def _attempt(self, part: Part) -> str:
        """Send one part, verify its ETag and return it."""
        url = await self._url_of(part)
        md5 = hashlib.md5(usedforsecurity=False)
        body = _body(self._source, part, md5, lambda sent: self._report(part, sent))
        response = await self._session.send(
            "PUT", url, timeout=_PART_TIMEOUT_SECONDS, headers=_body_headers(part), content=body
        )
        if response.status_code != _OK:
            raise error_response(response, url)
        self._source.verify()
        etag: str | None = response.headers.get("etag")
        # Some proxies drop the ETag. Our MD5 is enough: the service compares it when the upload is completed.
        if etag is None:
            return f'"{md5.hexdigest()}"'
        # With SSE-KMS on S3 the ETag is not the MD5.
        has_own_etags = response.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
        if not (has_own_etags or is_etag_of(etag, md5.hexdigest())):
            raise Failure(f"Part {part.number} was corrupted in transit.", status=_OK, code="etag_mismatch")
        return etag

    async def _url_of(self, part: Part) -> str:
        known = self._urls.get(part.number)
        if known is None or known.expires_at < time.time() + _EXPIRY_MARGIN_SECONDS:
            self._urls = (await fetch_status(self._session, self._opened.request_id)).urls
        if part.number not in self._urls:
            raise Failure(f"The service returned no URL for part {part.number}.", code="invalid_answer")
        return self._urls[part.number].url

    def _report(self, part: Part, sent: int) -> None:
        self._sent[part.number] = sent
        total, size = sum(self._sent.values()), self._source.size
        self._reporter.report(Progress("uploading", total / size, self._opened.request_id, total, size))


async def _complete(session: Session, sender: _PartSender, parts: Sequence[Part], settings: UploadSettings) -> None:
    """Complete the upload, resending parts that the service reports as missing or wrong."""
    url = join_url(session.config.asynch_url, "/upload/complete")
    headers = {"content-type": "application/json"}
    for rounds_left in range(settings.max_retries, -1, -1):
        body = json.dumps(sender.completion()).encode()
        try:
            response = await session.call_with_retries(
                "Completing the upload", "POST", url, headers=headers, content=body
            )
        except Failure as failure:
            problem = failure.details.get("problem") or {}
            named = {*problem.get("missing_parts", ()), *problem.get("wrong_parts", ())}
            again = [part for part in parts if part.number in named]
            if not again or rounds_left == 0:
                raise
            logger.warning("Parts %s are missing or corrupted: sending them again.", sorted(named))
        else:
            read_json(response, url, lambda value: value["status"])
            return
        await sender.send(again)


async def _delete(session: Session, request_id: str) -> None:
    """Try to delete the request; otherwise it expires."""
    url = join_url(session.config.asynch_url, f"/requests/{request_id}")
    try:
        with time_limit(_DELETE_TIMEOUT_SECONDS):
            await session.call("DELETE", url)
    except Failure as failure:
        logger.warning("Request %s could not be deleted: %s", request_id, failure.message)
