"""Functions that are data: a file spells them out, so that nobody has to bring them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, TypeVar, dataclass_transform

from adk_fluent.ir._kinds import class_of, path_of
from adk_fluent.ir._record import field, record

R = TypeVar("R")

#: Every class that `function` has made, by its name in files.
FUNCTIONS: Final[dict[str, type[Any]]] = {}
_OF_S: Final = "adk_fluent.builders._state_functions"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def function(cls: type[R]) -> type[R]:
    """Do what `record` does, for a class whose instances are called, and that are what they hold.

    A `Ref` to one is written to a file with its fields, and made again from them without
    permission; the refs in them need theirs. So its fields hold data and refs, it checks in
    ``__post_init__`` what their types do not say, and it does nothing that a stranger's file must
    not make it do. `adk_fluent` defines those of `S`; another's can be loaded once it is imported.

    Raises:
        TypeError: It cannot be called, or another has its name.
    """
    made = record(cls)
    if not any("__call__" in vars(base) for base in made.__mro__):
        raise TypeError(f"{path_of(made)} has no __call__, so it is no function")
    functions = FUNCTIONS if made.__module__ == _OF_S else known_functions()
    known = functions.setdefault(made.__name__, made)
    if path_of(known) != path_of(made):
        raise TypeError(f"{path_of(made)}: {path_of(known)} has that name in files; choose another")
    functions[made.__name__] = made  # of a module that is loaded again
    return made


def known_functions() -> dict[str, type[Any]]:
    """Every class that `function` has made, by its name in files; those of `S` are among them."""
    import_module(_OF_S)  # a process that loads a graph may not have built one
    return FUNCTIONS


def is_function(value: object) -> bool:
    """Whether a file spells it out."""
    kind = class_of(value)
    return FUNCTIONS.get(kind.__name__) is kind
