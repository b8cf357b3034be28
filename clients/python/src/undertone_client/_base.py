"""What both clients share: settings and the check before each operation."""

from __future__ import annotations

from ._calls import Context
from ._checks import default
from ._config import NO_KEY, require_ready, resolve_config, settings_problems
from ._log import set_level
from .errors import ConfigError


class ClientBase:
    """The settings of one client, whose problems are told when it is used."""

    def __init__(
        self,
        api_key: str | None = None,
        part_size: int = default("part_size"),
        show_progress: bool = True,  # noqa: FBT001, FBT002 - the documented order
        max_threads: int = default("max_threads"),
        retry_attempts: int = default("retry_attempts"),
        *,
        discrete_url: str | None = None,
        asynch_url: str | None = None,
        log_level: str | None = None,
    ) -> None:
        """
        Keep the settings. Those not given come from the environment, then from the defaults.

        :param api_key: read from SERVICE_API_KEY when absent
        :param part_size: bytes of each upload part, 1 MiB to 100 MiB
        :param show_progress: whether long operations draw a bar on a terminal or in a notebook
        :param max_threads: parts under way at the same time, 1 to 64
        :param retry_attempts: retries of every asynch call but the parts, 0 to 100
        :param discrete_url: the full address of a discrete endpoint; read from SERVICE_DISCRETE_URL when absent
        :param asynch_url: the base address of an asynch interface; read from SERVICE_ASYNCH_URL when absent
        :param log_level: DEBUG, INFO, WARNING or ERROR for the logger ``undertone_client``; read from
            SERVICE_LOG_LEVEL when absent
        """
        self._config = resolve_config(
            api_key,
            part_size,
            show_progress=show_progress,
            max_threads=max_threads,
            retry_attempts=retry_attempts,
            discrete_url=discrete_url,
            asynch_url=asynch_url,
            log_level=log_level,
        )
        self._problems = settings_problems(self._config)
        set_level(self._config.log_level)
        self._open()

    def __repr__(self) -> str:
        """Say where it talks to, and never the key."""
        config = self._config
        return f"{type(self).__name__}(discrete_url={config.discrete_url!r}, asynch_url={config.asynch_url!r})"

    def validate_config(self) -> None:
        """Raise one `ConfigError` that lists every problem of the settings, a missing key included."""
        problems = self._problems if self._config.api_key else [NO_KEY, *self._problems]
        if problems:
            raise ConfigError(problems)

    def _open(self) -> None:
        """Make the interfaces; each client has its own."""
        raise NotImplementedError

    def _begin(self) -> Context:
        return Context(self._config, require_ready(self._config, self._problems))
