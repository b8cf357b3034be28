"""Tokens: short-lived credentials for browsers and other places where an API key must not be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ._checks import TOKEN_SCOPES, choice_problem, default, number_problem, raise_if_any, timeout_problem
from ._deadline import time_limit
from ._failure import failing_as
from ._responses import read_json
from ._urls import sibling_url
from .errors import RequestFailedError
from .listings import Token

if TYPE_CHECKING:
    from ._session import Session
    from .literals import TokenScope


class AsyncTokens:
    """Short-lived credentials that work as an API key, for one purpose or for all."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def create(
        self, expires_in: int = default("expires_in"), scope: TokenScope = "all", *, timeout: float | None = None
    ) -> Token:
        """
        Create a token. It goes where a key goes, cannot create tokens itself, and is refused with its key.

        :param expires_in: lifetime in seconds, 60 to 3600
        :param scope: ``discrete`` (short recordings), ``stream`` (live audio) or ``all``
        :param timeout: maximum seconds for this call, with its retries
        """
        session = self._session
        session.config.require_ready()
        scope_problem = choice_problem("scope", scope, TOKEN_SCOPES)
        raise_if_any([number_problem("expires_in", expires_in), scope_problem, timeout_problem(timeout)])
        url = sibling_url(session.config.asynch_url, "tokens")
        body = json.dumps({"expires_in": int(expires_in), "scope": scope}).encode()
        headers = {"content-type": "application/json"}
        with failing_as(RequestFailedError), time_limit(timeout):
            response = await session.call_with_retries("Creating a token", "POST", url, headers=headers, content=body)
            return read_json(response, url, Token.from_dict)
