"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's ``__getattr__``, which imports each name when it is first used.

    Names that it does not have are those of another wheel, or an error that says what is near.
    `dir` of the package shows them all.

    Args:
        module: The ``__name__`` of the package.
        names: The names that each module has, with spaces between them; modules by the rest of
            their name behind ``adk_fluent.``, such as ``{"cost._report": "CostReport cost_of"}``.
    """
    places = {name: place for place, given in names.items() for name in given.split()}
    package = vars(sys.modules[module])

    def find(name: str) -> object:
        if name in places:
            value = getattr(import_module(f"adk_fluent.{places[name]}"), name)
            package[name] = value
            return value
        if name.startswith("_"):  # the import system asks for these each time
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        from adk_fluent._registry import resolve_name  # noqa: PLC0415  # slow to import

        return resolve_name(name, module, package.get("__all__", places))

    package["__dir__"] = lambda: sorted({*package, *places})
    return find
