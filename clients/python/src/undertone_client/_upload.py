"""Sends a recording in parts, side by side, and has the service put them together."""

from __future__ import annotations

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
from ._retry import with_retries
from ._source import ASYNCH_MAX_BYTES, Source, too_large
from ._steps import Pieces, Send, Steps, do, send, together
from ._urls import join_url
from .errors import UploadFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._calls import Context
    from ._progress import Reporter
    from ._urls import QueryValue

#: A part nobody takes a byte of for this long, or answers for this long, is cut off and sent again.
_STALL_SECONDS = 120

#: A cancelled upload may cost the caller this much more time, no longer.
_CANCEL_SECONDS = 5

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
    """A stretch of the recording: the bytes from `start` up to `end`. Numbers count from 1."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Ticket:
    """The service's permission to send: who we are to it, and an address for each part."""

    request_id: str
    upload_id: str
    urls: dict[int, str]


def plan_parts(size: int, part_size: int) -> list[Part]:
    """
    Cut a recording into parts of `part_size` bytes; the last one is what is left.

    The smallest part the checks let through makes 1,024 parts of the largest file, far below what the
    service takes.
    """
    if size == 0:
        raise Failure("The recording is empty.", code="audio_too_short")
    if size > ASYNCH_MAX_BYTES:
        raise too_large(ASYNCH_MAX_BYTES)
    starts = range(0, size, part_size)
    return [Part(i + 1, start, min(start + part_size, size)) for i, start in enumerate(starts)]


def upload_source(context: Context, source: Source, settings: UploadSettings, reporter: Reporter) -> Steps[str]:
    """Send it all and come back with the request's identifier, or have the service forget the request."""
    parts = plan_parts(source.size, settings.part_size)
    ticket = yield from _initiate(context, source, len(parts), settings)
    try:
        with failing_as(UploadFailedError, ticket.request_id):
            delivery = _Delivery(context, source, ticket, settings, reporter)
            yield from delivery.send(parts)
            yield from do(source.verify)
            yield from _complete(context, delivery, parts, settings)
    except GeneratorExit:
        raise
    except BaseException:  # a cancelled task and Ctrl-C too
        yield from _cancel(context, ticket.request_id)
        raise
    logger.info("Request %s: %d parts sent.", ticket.request_id, len(parts))
    return ticket.request_id


def is_etag_of(etag: str, md5: str) -> bool:
    """Compare; ETags are quoted, and weakened by some proxies."""
    bare = etag.strip()
    bare = bare.removeprefix("W/")
    return bare.strip('"').lower() == md5


class _Delivery:
    """Sends parts, a few at a time, and keeps their MD5s."""

    def __init__(
        self, context: Context, source: Source, ticket: Ticket, settings: UploadSettings, reporter: Reporter
    ) -> None:
        self._context = context
        self._source = source
        self._ticket = ticket
        self._settings = settings
        self._reporter = reporter
        self._md5s: dict[int, str] = {}
        self._sent: dict[int, int] = {}

    def send(self, parts: Sequence[Part]) -> Steps[None]:
        waiting = deque(parts)
        lanes = min(self._context.config.max_threads, len(parts))
        yield from together([self._lane(waiting) for _ in range(lanes)])

    def receipt(self) -> dict[str, Any]:
        parts = [{"PartNumber": number, "ETag": f'"{md5}"'} for number, md5 in sorted(self._md5s.items())]
        return {"request_id": self._ticket.request_id, "upload_id": self._ticket.upload_id, "parts": parts}

    def _lane(self, waiting: deque[Part]) -> Steps[None]:
        retries = self._settings.max_retries
        while True:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            attempt = self._attempts_at(part)
            self._md5s[part.number] = yield from with_retries(f"Part {part.number}", retries, attempt)

    def _attempts_at(self, part: Part) -> Any:
        return lambda: self._attempt(part)

    def _attempt(self, part: Part) -> Steps[str]:
        """Send one part; come back with its MD5 when it is acknowledged as what was sent."""
        url = self._ticket.urls[part.number]
        length = part.end - part.start
        md5 = hashlib.md5(usedforsecurity=False)
        body = Pieces(_hashed(self._source, part, md5), length, lambda sent: self._report(part, sent))
        headers = {"content-length": str(length), "content-type": "application/octet-stream"}
        answer = yield from send(Send("PUT", url, headers, content=body, patience=_STALL_SECONDS))
        if answer.status != _OK:
            raise refusal(answer, url)
        yield from do(self._source.verify)
        etag = answer.headers.get("etag")
        # One without an ETag (some proxies drop it) is taken for now: the service compares our MD5s with
        # what it holds before it accepts the whole.
        if etag is not None and not is_etag_of(etag, md5.hexdigest()):
            raise Failure(f"Part {part.number} arrived damaged.", retryable=True, status=_OK, code="etag_mismatch")
        return md5.hexdigest()

    def _report(self, part: Part, sent: int) -> None:
        self._sent[part.number] = sent
        total, size = sum(self._sent.values()), self._source.size
        self._reporter.report(Progress("uploading", total / size, self._ticket.request_id, total, size))


def _hashed(source: Source, part: Part, md5: Any) -> Iterator[bytes]:
    for piece in source.pieces(part.start, part.end):
        md5.update(piece)
        yield piece


def _initiate(context: Context, source: Source, count: int, settings: UploadSettings) -> Steps[Ticket]:
    base = context.config.asynch_url
    query: dict[str, QueryValue] = {
        "file_name": source.name,
        "part_count": count,
        "model": settings.model,
        "interval": settings.interval_seconds,
    }
    url = join_url(base, "/upload/initiate", query)
    answer = yield from context.call_patiently("Starting the upload", Send("POST", url))
    ticket = read_json(answer, url, lambda value: _read_ticket(value, base))
    if set(ticket.urls) != set(range(1, count + 1)):
        raise Failure("The service did not give one address for each part.", code="invalid_answer")
    return ticket


def _read_ticket(value: dict[str, Any], base: str) -> Ticket:
    try:
        urls = {int(entry["part_number"]): str(httpx.URL(base).join(entry["url"])) for entry in value["presigned_urls"]}
    except httpx.InvalidURL as error:
        raise ValueError from error
    return Ticket(str(value["request_id"]), str(value["upload_id"]), urls)


def _complete(context: Context, delivery: _Delivery, parts: Sequence[Part], settings: UploadSettings) -> Steps[None]:
    """Complete; parts that the service names as missing or wrong are sent once more and it is asked again."""
    url = join_url(context.config.asynch_url, "/upload/complete")
    for rounds_left in range(settings.max_retries, -1, -1):
        body = json.dumps(delivery.receipt()).encode()
        request = Send("POST", url, {"content-type": "application/json"}, content=body)
        try:
            answer = yield from context.call_patiently("Completing the upload", request)
        except Failure as failure:
            named = _named_parts(failure)
            again = [part for part in parts if part.number in named]
            if not again or rounds_left == 0:
                raise
            logger.warning("Parts %s did not arrive whole: sending them again.", sorted(named))
        else:
            read_json(answer, url, lambda value: value["status"])
            return
        yield from delivery.send(again)


def _named_parts(failure: Failure) -> set[int]:
    problem = failure.details.get("problem") or {}
    return {*problem.get("missing_parts", ()), *problem.get("wrong_parts", ())}


def _cancel(context: Context, request_id: str) -> Steps[None]:
    """Make the service forget the request, as well as it goes: it expires by itself in any case."""
    url = join_url(context.config.asynch_url, f"/requests/{request_id}")
    try:
        yield from context.call(Send("DELETE", url, patience=_CANCEL_SECONDS))
    except Failure as failure:
        logger.warning("Request %s could not be cancelled: %s", request_id, failure.message)
