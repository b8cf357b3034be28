"""The requests of a key: their status, lists of them, and their deletion. Also the models of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._checks import NUMBERS, STATUSES, choice_problem, number_problem, raise_if_any, timeout_problem
from ._deadline import time_limit
from ._failure import Failure, failing_as
from ._poll import check_request_id, error_class_of, poll_status
from ._responses import read_json
from ._retry import ASYNCH_RETRIES, with_retries
from ._urls import join_url, models_url
from .errors import RequestFailedError
from .listings import ModelList, RequestList, RequestStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ._session import Session
    from ._urls import QueryValue
    from .listings import RequestSummary
    from .literals import RequestState

_NOT_FOUND = 404
_LARGEST_PAGE = NUMBERS["limit"].most


class AsyncRequests:
    """Long recordings that the service knows."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def status(self, request_id: str, *, timeout: float | None = None) -> RequestStatus:
        """
        Return the status of a request, without waiting for its result.

        A request that has failed or expired raises nothing: its status says so.

        :param request_id: returned by `upload`
        :param timeout: maximum seconds for this call, with its retries
        :raises InvalidRequestIdError: the request_id is malformed or unknown
        """
        self._check(timeout_problem(timeout))
        check_request_id(request_id)
        with failing_as(error_class_of, request_id), time_limit(timeout):
            return await poll_status(self._session, request_id)

    async def list(
        self,
        status: RequestState | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        *,
        timeout: float | None = None,
    ) -> RequestList:
        """
        List the requests of this key, newest first, a page at a time.

        :param status: only requests with this status
        :param limit: maximum page size, 1 to 200; 50 by default
        :param cursor: the `next_cursor` of the previous page
        :param timeout: maximum seconds for this call, with its retries
        """
        limit_problem = None if limit is None else number_problem("limit", limit)
        self._check(choice_problem("status", status, STATUSES), limit_problem, timeout_problem(timeout))
        query: dict[str, QueryValue] = {"status": status, "limit": limit, "cursor": cursor}
        url = join_url(self._session.config.asynch_url, "/requests", query)
        with failing_as(RequestFailedError), time_limit(timeout):
            response = await self._session.call_with_retries("Listing the requests", "GET", url)
            return read_json(response, url, RequestList.from_dict)

    async def iter_requests(
        self, status: RequestState | None = None, *, timeout: float | None = None
    ) -> AsyncIterator[RequestSummary]:
        """
        Iterate over all requests of this key, newest first; pages are fetched as needed.

        :param status: only requests with this status
        :param timeout: maximum seconds for each page, with its retries
        """
        cursor: str | None = None
        while True:
            page = await self.list(status, _LARGEST_PAGE, cursor, timeout=timeout)
            for request in page.requests:
                yield request
            cursor = page.next_cursor
            if cursor is None:
                return

    async def webhook_secret(self, *, timeout: float | None = None) -> str:
        """
        Return the secret that signs this key's webhooks; `undertone_client.webhooks.verify` needs it.

        :param timeout: maximum seconds for this call, with its retries
        """
        self._check(timeout_problem(timeout))
        url = join_url(self._session.config.asynch_url, "/webhook-secret")
        with failing_as(RequestFailedError), time_limit(timeout):
            response = await self._session.call_with_retries("Getting the webhook secret", "GET", url)
            return read_json(response, url, lambda value: str(value["secret"]))

    async def delete(self, request_id: str, *, timeout: float | None = None) -> None:
        """
        Delete a request from the server now: its audio, its parts and its result.

        :param timeout: maximum seconds for this call, with its retries
        """
        session = self._session
        self._check(timeout_problem(timeout))
        check_request_id(request_id)
        url = join_url(session.config.asynch_url, f"/requests/{request_id}")

        async def attempt(retry: int) -> None:
            try:
                await session.call("DELETE", url)
            except Failure as failure:
                # 404 on a retry: an earlier attempt deleted it, and only its response was lost.
                if retry == 0 or failure.details.get("status") != _NOT_FOUND:
                    raise

        with failing_as(error_class_of, request_id), time_limit(timeout):
            await with_retries("Deleting the request", session.config.retry_attempts, ASYNCH_RETRIES, attempt)

    def _check(self, *problems: str | None) -> None:
        """Raise before anything is sent, if a setting or an argument is invalid."""
        self._session.config.require_ready()
        raise_if_any(problems)


async def list_models(session: Session, timeout: float | None) -> ModelList:
    session.config.require_ready()
    raise_if_any([timeout_problem(timeout)])
    url = models_url(session.config.asynch_url)
    with failing_as(RequestFailedError), time_limit(timeout):
        response = await session.call_with_retries("Listing the models", "GET", url)
        return read_json(response, url, ModelList.from_dict)
