"""Imports of optional packages."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingPackageError


def optional(module: str, what: str) -> Any:
    """Import a module, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{what} needs {package}, which is not installed: pip install {package}", code="missing_package"
        ) from error
