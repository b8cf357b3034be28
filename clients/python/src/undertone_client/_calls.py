"""Calls that carry the key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ._answers import refusal
from ._retry import with_retries
from ._steps import Answer, Send, Steps, send

if TYPE_CHECKING:
    from ._config import Config

_SUCCESS = range(200, 300)


@dataclass(frozen=True)
class Context:
    """What the operations of one client share: sound settings and a key."""

    config: Config
    api_key: str

    def call(self, request: Send) -> Steps[Answer]:
        """Make one attempt. Any status but 2xx is a failure."""
        answer = yield from send(replace(request, headers={**request.headers, "x-api-key": self.api_key}))
        if answer.status not in _SUCCESS:
            raise refusal(answer, request.url)
        return answer

    def call_patiently(self, what: str, request: Send) -> Steps[Answer]:
        """Make it again after a passing failure, as often as the client is set to."""
        return with_retries(what, self.config.retry_attempts, lambda: self.call(request))
