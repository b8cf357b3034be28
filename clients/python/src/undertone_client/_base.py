"""The settings, shared by both clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._checks import default, raise_if_any
from ._config import NO_KEY, resolve_config
from ._log import set_level
from ._session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx


class ClientBase:
    """Keeps the settings of one client. Invalid settings are reported on first use."""

    def __init__(
        self,
        api_key: str | None = None,
        part_size: int = default("part_size"),
        show_progress: bool = True,  # noqa: FBT001, FBT002 - the documented order
        max_threads: int = default("max_threads"),
        retry_attempts: int = default("retry_attempts"),
        *,
        base_url: str | None = None,
        discrete_url: str | None = None,
        asynch_url: str | None = None,
        log_level: str | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """
        Configure the client. Settings that are not given come from the environment, then from the defaults.

        :param api_key: the API key; default SERVICE_API_KEY
        :param part_size: bytes per upload part, 1 MiB to 100 MiB
        :param show_progress: draw a progress bar for long operations, on a terminal or in a notebook
        :param max_threads: maximum number of parts uploaded concurrently, 1 to 64
        :param retry_attempts: retries of every asynch call except parts, 0 to 100
        :param base_url: URL of the server; default SERVICE_URL
        :param discrete_url: full URL of another discrete endpoint; default SERVICE_DISCRETE_URL
        :param asynch_url: base URL of another asynch interface; default SERVICE_ASYNCH_URL
        :param log_level: DEBUG, INFO, WARNING, ERROR or SILENT for the logger ``undertone_client``; default
            SERVICE_LOG_LEVEL
        :param timeout: seconds without a byte in either direction before a request fails; default 60, and 120 for
            parts. For a limit on a whole call, with its retries, pass `timeout` to the call
        :param headers: additional headers for every request to the service
        :param proxy: URL of a proxy; default HTTPS_PROXY, HTTP_PROXY and ALL_PROXY
        :param http_client: an ``httpx.AsyncClient`` of your own, for settings that are not listed here;
            `EmotionClient` closes it, `AsyncEmotionClient` leaves that to you
        """
        self._config = resolve_config(
            api_key,
            base_url,
            discrete_url,
            asynch_url,
            log_level,
            part_size=part_size,
            show_progress=show_progress,
            max_threads=max_threads,
            retry_attempts=retry_attempts,
            timeout=timeout,
            headers={} if headers is None else headers,
            proxy=proxy,
            http_client=http_client,
        )
        set_level(self._config.log_level)
        self._open(Session(self._config))

    def __repr__(self) -> str:
        config = self._config
        return f"{type(self).__name__}(discrete_url={config.discrete_url!r}, asynch_url={config.asynch_url!r})"

    def validate_config(self) -> None:
        """Raise one `ConfigError` that lists every invalid setting, including a missing key."""
        raise_if_any([None if self._config.api_key else NO_KEY, *self._config.problems()])

    def _open(self, session: Session) -> None:
        raise NotImplementedError
