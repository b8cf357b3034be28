"""An HTTP server with the documented API and planned faults."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable
from urllib.parse import parse_qs, urlsplit

KEY = "a-key-for-tests-0123456789"

DISCRETE_ANSWER = {
    "main_emotion": "happy",
    "confidence": 0.7,
    "all_predictions": {"angry": 0.1, "happy": 0.7, "neutral": 0.1, "sad": 0.1},
}

TIMELINE = [
    {"t": "00:00", "emotion": "happy", "confidence": 0.9},
    {"t": "00:05", "emotion": "sad", "confidence": 0.3},
    {"t": "100:10", "emotion": "angry", "confidence": 0.5},
]

MODELS = {
    "version": "1",
    "weights": {"id": "research", "licence": "none", "commercial_use": False, "summary": "none"},
    "models": [{"id": "4emotions", "default": True, "emotions": ["angry", "happy"], "figures": None}],
}

ROUTES = {
    "/asynch/upload/initiate": "initiate",
    "/asynch/upload/complete": "complete",
    "/asynch/prediction": "prediction",
    "/asynch/webhook-secret": "secret",
    "/discrete/emotion": "discrete",
    "/models": "models",
    "/tokens": "tokens",
}


@dataclass
class Seen:
    """One request as the server received it."""

    route: str
    part: int | None
    #: Number of earlier calls of this route (and part).
    time: int
    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}


@dataclass(frozen=True)
class Fault:
    """
    A planned fault of the network or the server.

    answer: respond with this and do nothing else; cut: disconnect after `after_bytes` of the request; silent:
    process the request, then disconnect without a response; no-etag: respond without an ETag; damage: store other
    bytes than those sent; forget: accept a part without an ETag and store nothing; slow: wait before processing.
    """

    kind: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    after_bytes: int = 0
    seconds: float = 0


@dataclass
class Upload:
    upload_id: str
    part_count: int
    query: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)
    md5s: dict[int, str] = field(default_factory=dict)
    completed: bool = False
    polls: int = 0


class FlakyServer:
    def __init__(self, *, keep_parts: bool = True) -> None:
        self.seen: list[Seen] = []
        self.uploads: dict[str, Upload] = {}
        self.deleted: set[str] = set()
        #: Request IDs by Idempotency-Key.
        self.keys: dict[str, str] = {}
        #: Lifetime of new URLs; None: unlimited.
        self.url_seconds: int | None = None
        #: Use ETags that are not MD5s, as S3 does with SSE-KMS.
        self.encrypts = False
        #: Number of polls before a result is ready.
        self.pending_polls = 0
        self.faults: Callable[[Seen], Fault | None] = lambda _seen: None
        #: Peak number of concurrent parts or short recordings.
        self.peak_concurrency = 0
        self.keep_parts = keep_parts
        self.lock = threading.Lock()
        self.in_flight = 0
        flaky = self

        class Handler(_Handler):
            server_state = flaky

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def settings(self) -> dict[str, Any]:
        """Client settings for this server."""
        return {"api_key": KEY, "base_url": self.origin}

    @property
    def environment(self) -> dict[str, str]:
        """The same settings as environment variables."""
        return {"SERVICE_API_KEY": KEY, "SERVICE_URL": self.origin}

    def calls(self, route: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.route == route]

    def assembled(self, request_id: str) -> bytes:
        """Return the file of a completed request."""
        upload = self.uploads[request_id]
        assert upload.completed
        return b"".join(upload.parts[number] for number in sorted(upload.parts))

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note(self, method: str, path: str, headers: dict[str, str]) -> Seen:
        parts = urlsplit(path).path
        parts = parts[3:] if parts.startswith("/v1/") else parts
        part = int(parts.split("/")[3]) if parts.startswith("/put/") else None
        route = "part" if part is not None else _route_of(method, parts)
        with self.lock:
            times = sum(1 for seen in self.seen if (seen.route, seen.part) == (route, part))
            seen = Seen(route, part, times, method, self.origin + path, headers)
            self.seen.append(seen)
        return seen


def _route_of(method: str, path: str) -> str:
    if path.startswith("/asynch/requests/"):
        return "delete"
    if path == "/asynch/requests":
        return "list" if method == "GET" else "submit"
    return ROUTES.get(path) or ("resume" if path.startswith("/asynch/upload/") else ROUTES[path])


def _request_for(state: FlakyServer, seen: Seen, count: int) -> str:
    """Return the request of an Idempotency-Key, creating it if needed."""
    key = seen.headers["idempotency-key"]
    with state.lock:
        if key not in state.keys:
            state.keys[key] = str(uuid.uuid4())
            state.uploads[state.keys[key]] = Upload(str(uuid.uuid4()), count, seen.query)
        return state.keys[key]


def _urls(state: FlakyServer, request_id: str, numbers: list[int]) -> dict[str, Any]:
    urls = [
        {"part_number": number, "url": f"{state.origin}/v1/put/{request_id}/{number}?signature=secret-signature"}
        for number in numbers
    ]
    if state.url_seconds is not None:
        expiry = datetime.now(timezone.utc) + timedelta(seconds=state.url_seconds)
        urls = [{**entry, "expires_at": expiry.isoformat().replace("+00:00", "Z")} for entry in urls]
    upload_id = state.uploads[request_id].upload_id
    return {"request_id": request_id, "upload_id": upload_id, "presigned_urls": urls, "expires_at": "x"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_details: Any) -> None:
        """Broken connections are expected here."""


class _Handler(BaseHTTPRequestHandler):
    server_state: FlakyServer
    protocol_version = "HTTP/1.1"
    # Send small responses immediately, as real servers do.
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_details: Any) -> None:
        pass

    def _serve(self) -> None:
        state = self.server_state
        is_counted = "/put/" in self.path or "/discrete/" in self.path
        with state.lock:
            state.in_flight += is_counted
            state.peak_concurrency = max(state.peak_concurrency, state.in_flight)
        try:
            self._answer_or_fail(state)
        finally:
            with state.lock:
                state.in_flight -= is_counted

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names given by http.server

    def _answer_or_fail(self, state: FlakyServer) -> None:
        seen = state.note(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        fault = state.faults(seen)
        length = int(self.headers.get("content-length", 0))
        if fault and fault.kind == "cut":
            self._receive(min(fault.after_bytes, length))
            self._cut()
            return
        digest, body = self._receive(length)
        seen.body = body
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault and fault.kind == "answer":
            self._send(fault.status, fault.body, fault.headers)
            return
        if seen.route != "part" and self.headers.get("x-api-key") != KEY:
            self._problem(401, "invalid_api_key", "This key is not known here.")
            return
        self.is_silent = bool(fault and fault.kind == "silent")
        getattr(self, f"_{seen.route}")(state, seen, fault, digest)
        if self.is_silent:
            self._cut()

    def _receive(self, length: int) -> tuple[str, bytes]:
        md5, kept = hashlib.md5(), []
        while length > 0:
            piece = self.rfile.read(min(length, 256 * 1024))
            if not piece:
                raise ConnectionError
            md5.update(piece)
            if self.server_state.keep_parts:
                kept.append(piece)
            length -= len(piece)
        return md5.hexdigest(), b"".join(kept)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def _initiate(self, state: FlakyServer, seen: Seen, _fault: Any, _digest: str) -> None:
        count = int(seen.query["part_count"])
        request_id = _request_for(state, seen, count)
        self._json(_urls(state, request_id, list(range(1, count + 1))))

    def _resume(self, state: FlakyServer, seen: Seen, _fault: Any, _digest: str) -> None:
        request_id = urlsplit(seen.url).path.rsplit("/", 1)[-1]
        upload = state.uploads.get(request_id)
        if upload is None:
            self._problem(404, "not_found", "There is no such request.")
            return
        missing = [number for number in range(1, upload.part_count + 1) if number not in upload.parts]
        self._json(
            {
                **_urls(state, request_id, missing),
                "status": "queued" if upload.completed else "uploading",
                "part_count": upload.part_count,
                "parts": [
                    {"PartNumber": number, "ETag": f'"{upload.md5s[number]}"', "bytes": len(body)}
                    for number, body in upload.parts.items()
                ],
            }
        )

    def _submit(self, state: FlakyServer, seen: Seen, _fault: Any, digest: str) -> None:
        request_id = _request_for(state, seen, 1)
        upload = state.uploads[request_id]
        upload.parts[1], upload.md5s[1], upload.completed = seen.body, digest, True
        self._json({"request_id": request_id, "status": "queued"}, 202)

    def _list(self, *_details: Any) -> None:
        self._json({"requests": [], "next_cursor": None})

    def _secret(self, *_details: Any) -> None:
        self._json({"secret": "whsec_c2VjcmV0"})

    def _part(self, state: FlakyServer, seen: Seen, fault: Fault | None, digest: str) -> None:
        upload = state.uploads.get(urlsplit(seen.url).path.split("/")[3])
        if upload is None or seen.part is None:
            self._problem(404, "not_found", "There is no such upload.")
            return
        kind = fault.kind if fault else ""
        body = seen.body
        if kind == "damage":
            body = bytes([body[0] ^ 1]) + body[1:]
            digest = hashlib.md5(body).hexdigest()
        if state.encrypts:
            digest = hashlib.md5(body + b"encrypted").hexdigest()
        if kind != "forget":
            upload.parts[seen.part] = body
            upload.md5s[seen.part] = digest
        headers = {} if kind in ("no-etag", "forget") else {"etag": f'"{digest}"'}
        self._send(200, b"", headers | ({"x-amz-server-side-encryption": "aws:kms"} if state.encrypts else {}))

    def _complete(self, state: FlakyServer, seen: Seen, _fault: Any, _digest: str) -> None:
        body = json.loads(seen.body if state.keep_parts else b"{}")
        upload = state.uploads.get(body.get("request_id"))
        if not state.keep_parts:
            upload = next(iter(state.uploads.values()))
        elif upload is None or upload.upload_id != body["upload_id"]:
            self._problem(404, "not_found", "There is no such upload.")
            return
        else:
            etags = {item["PartNumber"]: item["ETag"] for item in body["parts"]}
            numbers = range(1, upload.part_count + 1)
            missing = [number for number in numbers if number not in upload.md5s]
            wrong = [n for n in numbers if n in upload.md5s and etags.get(n) != f'"{upload.md5s[n]}"']
            if missing or wrong:
                detail = "Parts are missing or wrong; send them again."
                self._problem(400, "bad_request", detail, missing_parts=missing, wrong_parts=wrong)
                return
        upload.completed = True
        self._json({"request_id": body.get("request_id"), "status": "queued"})

    def _prediction(self, state: FlakyServer, seen: Seen, _fault: Any, _digest: str) -> None:
        request_id = seen.query["request_id"]
        upload = state.uploads.get(request_id)
        if request_id in state.deleted:
            self._problem(410, "gone", "This request has been deleted.")
        elif upload is None:
            self._problem(404, "not_found", "There is no such request.")
        elif upload.polls < state.pending_polls:
            upload.polls += 1
            progress = upload.polls / (state.pending_polls + 1)
            self._json({"request_id": request_id, "status": "processing", "progress": progress}, 202)
        else:
            self._json({"request_id": request_id, "status": "completed", "emotions": TIMELINE})

    def _delete(self, state: FlakyServer, seen: Seen, _fault: Any, _digest: str) -> None:
        request_id = urlsplit(seen.url).path.rsplit("/", 1)[-1]
        if state.uploads.pop(request_id, None) is None:
            self._problem(404, "not_found", "There is no such request.")
            return
        state.deleted.add(request_id)
        self._send(204, b"", {})

    def _discrete(self, *_details: Any) -> None:
        self._json(DISCRETE_ANSWER)

    def _models(self, *_details: Any) -> None:
        self._json(MODELS)

    def _tokens(self, _state: FlakyServer, seen: Seen, *_details: Any) -> None:
        asked = json.loads(seen.body)
        self._json({"token": "a.token", "expires_at": "2026-01-01T00:10:00.000Z", "scope": asked["scope"]})

    def _json(self, value: Any, status: int = 200) -> None:
        headers = {"content-type": "application/json", "x-request-id": "http-1"}
        self._send(status, json.dumps(value).encode(), headers)

    def _problem(self, status: int, code: str, detail: str, **figures: Any) -> None:
        problem = {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code}
        body = json.dumps({**problem, "request_id": "http-1", **figures}).encode()
        self._send(status, body, {"content-type": "application/problem+json", "x-request-id": "http-1"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        if getattr(self, "is_silent", False):
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
