"""What the transforms of `S` do, as values: two that do the same are equal, here and elsewhere.

Each is called with state, read-only, and returns what is to be written, or something to await for
it. A key that is absent and one that holds None are the same to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from adk_fluent._calling import Calls, Outcome, Stated, call, named
from adk_fluent._words import describe
from adk_fluent.builders._json_values import as_json_text
from adk_fluent.errors import UsageError
from adk_fluent.ir import Ref, StateFieldRef, function, is_reserved_key

State = Mapping[str, Any]
Writes = dict[str, Any]

#: Characters of one value in the log, at most.
_LOGGED: Final = 200


@function
class Assign(Stated):
    """Writes constants.

    Attributes:
        constants: A JSON object: key to value.
        missing: Only where there is no value yet.
    """

    constants: str
    missing: bool = False

    def __post_init__(self) -> None:
        if not _is_written(self.constants):  # in a file of a stranger's
            raise ValueError("its constants are not JSON as S.set(...) writes it")

    def __call__(self, state: State) -> Writes:
        from json import loads  # noqa: PLC0415  # whoever only builds a pipeline does not need it

        values: Writes = loads(self.constants)  # new objects each time: no two runs share a list
        if not self.missing:
            return values
        return {key: value for key, value in values.items() if state.get(key) is None}

    def outcomes(self) -> tuple[Outcome, ...]:
        """Each constant is there afterwards; None removes a key, or is no default for it."""
        from json import loads  # noqa: PLC0415  # whoever only builds a pipeline does not need it

        values: Writes = loads(self.constants)
        return tuple(
            Outcome(key, None, value is None, value, (key,) if self.missing else ())
            for key, value in values.items()
            if value is not None or not self.missing
        )


def _is_written(text: str) -> bool:
    """Whether `S` makes this text of what it holds."""
    from json import loads  # noqa: PLC0415  # whoever has no constants does not need it

    try:
        values = loads(text)
        return isinstance(values, dict) and as_json_text(cast("Writes", values), "S") == text
    except (TypeError, ValueError, RecursionError):  # no JSON, or more than state can hold
        return False


@function
class Rename(Stated):
    """Moves values to other keys, all at once; what is absent is not moved.

    Attributes:
        names: The old key and the new one, for each.
    """

    names: tuple[tuple[str, str], ...]

    def __call__(self, state: State) -> Writes:
        found = [(old, new, state.get(old)) for old, new in self.names]
        moved = [each for each in found if each[2] is not None]
        return {old: None for old, _, _ in moved} | {new: value for _, new, value in moved}

    def outcomes(self) -> tuple[Outcome, ...]:
        """What is there moves; where nothing moves to, the value that was there stays."""
        old, new = {old for old, _ in self.names}, {new for _, new in self.names}
        gone = [Outcome(key, removes=True) for key, _ in self.names if key not in new]
        made = ((to, (key,) if to in old else (key, to)) for key, to in self.names)
        return (*gone, *(Outcome(to, sources, copies=sources) for to, sources in made))


@function
class Log:
    """Logs values.

    Attributes:
        keys: Whose; none is every key of the session's own that is the user's.
        logger: Name of the logger.
        level: Level of the message.
    """

    keys: tuple[str, ...]
    logger: str
    level: int

    def __call__(self, state: State) -> None:
        import logging  # noqa: PLC0415  # whoever only builds a pipeline does not need it

        logger = logging.getLogger(self.logger)
        if logger.isEnabledFor(self.level):
            shown = {key: state.get(key) for key in self.keys} or _own(state)
            values = ", ".join(f"{_printed(key)}={_shortened(shown[key])}" for key in shown)
            logger.log(self.level, "state: %s", values or "empty")


def _own(state: State) -> dict[str, Any]:
    """What the session keeps for the user, without what is called like a credential."""
    from adk_fluent.protocol import Redactor  # noqa: PLC0415  # slow to import

    own = {key: state[key] for key in sorted(state) if _is_own(key)}
    return Redactor().redact(own)


def _is_own(key: str) -> bool:
    return StateFieldRef(key).scope == "session" and not is_reserved_key(key)


def _printed(key: str) -> str:
    return key if key.isprintable() else repr(key)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LOGGED else f"{text[:_LOGGED]}..."


# --- what calls functions of the user's ----------------------------------------------------------


@function
class Apply(Calls, Stated):
    """Applies a function to one value; what is absent stays so.

    Attributes:
        key: The value's key.
        fn: ``fn(value) -> value``, sync or async.
    """

    key: str
    fn: Ref

    def functions(self) -> tuple[tuple[Ref, int], ...]:
        """The functions inside."""
        return ((self.fn, 1),)

    def makes(self) -> tuple[tuple[str, Ref], ...]:
        """The value is what the function gives."""
        return ((self.key, self.fn),)

    def __call__(self, state: State, /, **resources: Any) -> Writes | Awaitable[Writes]:
        value = state.get(self.key)
        return {} if value is None else _written(self.key, _call(self.fn, resources, value))

    def outcomes(self) -> tuple[Outcome, ...]:
        """There is a value if there was one."""
        return (Outcome(self.key, (self.key,)),)


@function
class Combine(Calls, Stated):
    """Makes one value of several; if all are absent, none.

    Attributes:
        keys: Their keys.
        into: The key of the new one.
        fn: ``fn(*values) -> value``, sync or async, absent ones being None; None joins texts.
    """

    keys: tuple[str, ...]
    into: str
    fn: Ref | None = None

    def functions(self) -> tuple[tuple[Ref, int], ...]:
        """The functions inside."""
        return () if self.fn is None else ((self.fn, len(self.keys)),)

    def makes(self) -> tuple[tuple[str, Ref], ...]:
        """The new value is what the function gives."""
        return () if self.fn is None else ((self.into, self.fn),)

    def __call__(self, state: State, /, **resources: Any) -> Writes | Awaitable[Writes]:
        values = [state.get(key) for key in self.keys]
        if all(value is None for value in values):
            return {}
        if self.fn is None:
            return {self.into: "\n".join(_texts(zip(self.keys, values, strict=True)))}
        return _written(self.into, _call(self.fn, resources, *values))

    def outcomes(self) -> tuple[Outcome, ...]:
        """There is a value if one of them has one, or if there was one already."""
        sources = (*self.keys, self.into)
        if self.fn is not None:
            return (Outcome(self.into, sources),)
        return (Outcome(self.into, sources, copies=(self.into,), type=str),)


@function
class Derive(Calls):
    """Computes several values, all from state as it was before.

    Attributes:
        parts: Each key with its ``fn(state) -> value``, sync or async.
    """

    parts: tuple[tuple[str, Ref], ...]

    def functions(self) -> tuple[tuple[Ref, int], ...]:
        """The functions inside."""
        return tuple((fn, 1) for _, fn in self.parts)

    def makes(self) -> tuple[tuple[str, Ref], ...]:
        """Each value is what its function gives."""
        return self.parts

    def __call__(self, state: State, /, **resources: Any) -> Writes | Awaitable[Writes]:
        made: Writes = {}
        values = ((key, _call(fn, resources, state)) for key, fn in self.parts)
        for key, value in values:  # one after the other: if one fails, none was called in vain
            if isinstance(value, Awaitable):
                return _awaited(made, key, cast("Awaitable[Any]", value), values)
            made[key] = value
        return made


def _written(key: str, value: Any) -> Writes | Awaitable[Writes]:
    if isinstance(value, Awaitable):
        return _awaited({}, key, cast("Awaitable[Any]", value), ())
    return {key: value}


async def _awaited(
    made: Writes, first: str, value: Awaitable[Any], rest: Iterable[tuple[str, Any]]
) -> Writes:
    """What was made, what is waited for, and the rest."""
    made[first] = await value
    for key, each in rest:
        made[key] = await each if isinstance(each, Awaitable) else each
    return made


def _texts(values: Iterator[tuple[str, object]]) -> Iterator[str]:
    for key, value in values:
        if isinstance(value, str | int | float):
            yield str(value)
        elif value is not None:
            raise UsageError(
                f"S.merge(...) joins texts and numbers, but {key!r} is neither",
                found=describe(value),
                help="say how to combine them: S.merge(..., fn=lambda one, other: ...)",
            )


def _call(fn: Ref, resources: Mapping[str, Any], *values: Any) -> Any:
    """Call a function, with those resources that it names."""
    taken = len(values)
    names = [name for name in named(fn, taken) if name in resources] if resources else ()
    return call(fn, values, {name: resources[name] for name in names}, resources, taken)
