"""The logger of all wheels."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    import logging


class _WhenUsed:
    """Stands for the logger until something is logged: `logging` is slow to import."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_logger(), name)


@cache
def _logger() -> logging.Logger:
    import logging  # noqa: PLC0415  # see above

    found = logging.getLogger("adk_fluent")
    found.addHandler(logging.NullHandler())
    return found


#: The logger ``adk_fluent``, for every layer. It shows nothing until the program sets up logging.
LOG: Final = cast("logging.Logger", _WhenUsed())
