"""What both clients share: their settings."""

from __future__ import annotations

from ._checks import default, raise_if_any
from ._config import NO_KEY, resolve_config
from ._log import set_level
from ._session import Session


class ClientBase:
    """The settings of one client, whose problems are reported when it is used."""

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
    ) -> None:
        """
        Keep the settings. Those not given come from the environment, then from the defaults.

        :param api_key: read from SERVICE_API_KEY when absent
        :param part_size: bytes of each upload part, 1 MiB to 100 MiB
        :param show_progress: whether long operations draw a progress bar on a terminal or in a notebook
        :param max_threads: parts sent at the same time, 1 to 64
        :param retry_attempts: retries of every asynch call but the parts, 0 to 100
        :param base_url: the address of the server; read from SERVICE_URL when absent
        :param discrete_url: the full address of another discrete endpoint; read from SERVICE_DISCRETE_URL when absent
        :param asynch_url: the base address of another asynch interface; read from SERVICE_ASYNCH_URL when absent
        :param log_level: DEBUG, INFO, WARNING, ERROR or SILENT for the logger ``undertone_client``; read from
            SERVICE_LOG_LEVEL when absent
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
        )
        set_level(self._config.log_level)
        self._open(Session(self._config))

    def __repr__(self) -> str:
        """Say where it sends to, and never the key."""
        config = self._config
        return f"{type(self).__name__}(discrete_url={config.discrete_url!r}, asynch_url={config.asynch_url!r})"

    def validate_config(self) -> None:
        """Raise one `ConfigError` that lists every problem of the settings, a missing key included."""
        raise_if_any([None if self._config.api_key else NO_KEY, *self._config.problems()])

    def _open(self, session: Session) -> None:
        """Make the interfaces; each client has its own."""
        raise NotImplementedError
