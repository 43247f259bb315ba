"""What the methods of `S` take, as the IR holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from adk_fluent._words import describe
from adk_fluent.builders._keys import as_key
from adk_fluent.builders._operands import as_predicate, function_name, some
from adk_fluent.errors import UsageError
from adk_fluent.ir import Match, Ref, Scope, StateFieldRef, is_reserved_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.builders._types import KeyLike

LOGGER: Final = "adk_fluent.state"


class Keys:
    """State keys for a method of `S`, or of one of its variants.

    Args:
        scope: The scope that the method touches.
        method: Its name.
    """

    __slots__ = ("_method", "_scope", "role")

    def __init__(self, scope: Scope, method: str) -> None:
        self._scope: Scope = scope
        self._method = method
        self.role: str = f"S.{method}(...)" if scope == "session" else f"S.{scope}.{method}(...)"

    def read(self, value: KeyLike) -> str:
        """The full key of one that is only read, which may be of any scope.

        Raises:
            UsageError: It is no state key.
        """
        key = as_key(value, self.role).key
        bare = self._scope == "session" or StateFieldRef(key).scope != "session"
        return key if bare else f"{self._scope}:{key}"

    def one(self, value: KeyLike) -> str:
        """The full key of one that is written.

        Raises:
            UsageError: It is no state key, of another scope, or kept for others.
        """
        key = self.read(value)
        field = StateFieldRef(key)
        if field.scope != self._scope:
            instead = f"use S.{field.scope}.{self._method}(...)"
            if self._method == "pick":
                instead = "leave it out: what is not the session's own stays anyway"
            self._refuse(key, f"a key of the scope {field.scope!r}", instead)
        if not field.name.strip():
            self._refuse(key, "a prefix without a name", "name a key")
        if is_reserved_key(field.name):
            found = "a key that ADK and adk-fluent keep for themselves"
            self._refuse(key, found, "choose another key")
        return key

    def several(self, values: tuple[KeyLike, ...]) -> tuple[str, ...]:
        """Full keys of what is written, one at least, each once."""
        some(values, self.role, "a state key")
        return tuple(dict.fromkeys(self.one(value) for value in values))

    def by_key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What was given by keyword, one at least, by full key."""
        some(tuple(values), self.role, "a state key")
        found: dict[str, Any] = {}
        for name, value in values.items():
            key = self.one(name)
            if key in found:
                self._refuse(key, "that key twice, with its prefix and without", "name it once")
            found[key] = value
        return found

    def _refuse(self, key: str, found: str, help: str) -> NoReturn:
        raise UsageError(f"{self.role} does not take {key!r}", found=found, help=help)


def as_function(fn: object, role: str) -> Ref:
    """A function that makes a value.

    Raises:
        UsageError: It cannot be called, or makes a generator.
    """
    if not callable(fn):
        raise UsageError(
            f"{role} takes functions",
            found=describe(fn),
            help="pass a function that returns the value; it may be async",
        )
    function_name(fn, f"a function of {role}", "", help="return the value; do not yield")
    return Ref.to(fn)


def as_test(test: object, role: str) -> tuple[Match | Ref, str]:
    """A predicate, and what an error says by default.

    Raises:
        UsageError: It is neither a state key nor a function.
    """
    if isinstance(test, Match | Ref) or (callable(test) and not isinstance(test, type)):
        return as_predicate(test, role), "guard failed"
    if isinstance(test, str) or isinstance(getattr(test, "key", None), str):
        key = as_key(cast("KeyLike", test), role).key
        return Match("ne", key, None), f"state has no {key!r}"
    raise UsageError(
        f"{role} takes a state key or a function of state",
        found=describe(test),
        help='write S.guard("topic"), or S.guard(lambda s: s["score"] > 3)',
    )


def as_logger_name(logger: object, role: str) -> str:
    """The name of a logger; None is that of ours.

    Raises:
        UsageError: It is no logger that has a name.
    """
    if logger is None:
        return LOGGER
    if isinstance(logger, str) and logger:
        return logger
    import logging  # noqa: PLC0415  # whoever only builds a pipeline does not need it

    if isinstance(logger, logging.Logger) and logging.getLogger(logger.name) is logger:
        return logger.name
    raise UsageError(
        f"the logger of {role} is one of logging.getLogger(...), or its name",
        found=describe(logger),
        help=f"leave it out to log under {LOGGER!r}",
    )


def as_level(level: object, role: str) -> int:
    """A level of a log message.

    Raises:
        UsageError: It is no int.
    """
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    raise UsageError(
        f"the level of {role} is an int",
        found=describe(level),
        help="pass one of logging's, such as logging.DEBUG",
    )
