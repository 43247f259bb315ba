"""What an import of a part of adk_fluent says whose wheel is absent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from adk_fluent._hints import WHEELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class AbsentLayerFinder:
    """A finder that stands last in line: it is asked only when no installed wheel has the part.

    It is no subclass of `importlib.abc.MetaPathFinder`, whose import would cost half of ours.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a known but absent part of adk_fluent; pass over everything else.

        Raises:
            ModuleNotFoundError: with the name of the wheel to install.
        """
        package, _, part = fullname.partition(".")
        wheel = WHEELS.get(part) if package == "adk_fluent" else None
        if wheel is None:
            return None
        raise ModuleNotFoundError(
            f"{fullname} is not installed; add it with: pip install {wheel}", name=fullname
        )


def install() -> None:
    """Put the finder at the end of `sys.meta_path`, once, also when adk_fluent is reloaded."""
    if not any(type(finder).__name__ == AbsentLayerFinder.__name__ for finder in sys.meta_path):
        sys.meta_path.append(AbsentLayerFinder())
