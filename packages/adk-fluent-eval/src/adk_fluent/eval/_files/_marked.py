"""Reading what stands for something that files have no words for: functions, errors, patterns."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name

if TYPE_CHECKING:
    from adk_fluent.eval._files._place import At, Source

#: A mapping with one of these as its only key stands for something else; `LITERAL` for its value.
CALL: Final = "call"
RAISE: Final = "raise"
REGEX: Final = "regex"
LITERAL: Final = "literal"

FLAGS: Final = {
    "a": re.ASCII,
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
}

#: Functions that files may name.
Registry = Mapping[str, Callable[..., Any]]


def marker(value: Any, *known: str) -> str | None:
    """The key of a mapping that stands for something else; None of any other value."""
    if not isinstance(value, Mapping) or len(cast("Mapping[str, Any]", value)) != 1:
        return None
    key = next(iter(cast("Mapping[str, Any]", value)))
    return key if key in known else None


def read_marked(source: Source, at: At, value: Any, registry: Registry | None, *known: str) -> Any:
    """A value, or what it stands for.

    Args:
        source: The file.
        at: Where in it the value is.
        value: The value.
        registry: Functions by the names that files call them by.
        *known: What it may stand for, of `CALL` and `RAISE`.

    Raises:
        EvalFileError: It stands for nothing.
    """
    match marker(value, *known, LITERAL):
        case "call":
            return _function(source, (*at, CALL), value[CALL], registry)
        case "raise":
            return _exception(source, (*at, RAISE), value[RAISE])
        case "literal":
            return value[LITERAL]
        case _:
            return value


def read_pattern(source: Source, at: At, value: Mapping[str, Any]) -> re.Pattern[str]:
    """The pattern of ``{regex: ..., flags: ...}``.

    Raises:
        EvalFileError: It is none.
    """
    for key in value:
        if key not in (REGEX, "flags"):
            raise source.unknown((*at, key), "a pattern", (REGEX, "flags"))
    text, letters = value.get(REGEX), value.get("flags") or ""
    if not isinstance(text, str):
        raise source.error(
            at,
            "what an answer contains is a text, or a pattern",
            found=describe(text),
            help='write a text, or {regex: "T-[0-9]+"}',
        )
    if not isinstance(letters, str) or not set(letters) <= FLAGS.keys():
        raise source.error(
            (*at, "flags"),
            "the flags of a pattern are letters",
            found=describe(letters),
            help=f"some of {', '.join(FLAGS)}, such as flags: i",
        )
    flags = re.NOFLAG
    for letter in letters:
        flags |= FLAGS[letter]
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise source.error((*at, REGEX), f"the pattern is broken: {error}") from error
    except (OverflowError, RecursionError) as error:
        raise source.error((*at, REGEX), "the pattern is too large") from error


def _function(source: Source, at: At, name: Any, registry: Registry | None) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise source.error(
            at, "a function is called by its name", found=describe(name), help='{call: "name"}'
        )
    if registry is None:
        raise source.error(
            at,
            f"the file names the function {name!r}, and no functions were given",
            help=f"load it with registry={{{name!r}: the_function}}; files never import code",
        )
    if name not in registry:
        near = nearest_name(name, registry)
        known = ", ".join(sorted(registry)) or "none"
        raise source.error(
            at,
            f"there is no function {name!r} in the registry",
            help=f"did you mean {near!r}?" if near else f"it has {known}",
        )
    function = registry[name]
    if not callable(function):
        raise source.error(at, f"{name!r} of the registry is no function", found=describe(function))
    return function


def _exception(source: Source, at: At, text: Any) -> Exception:
    name, _, message = text.partition(":") if isinstance(text, str) else ("", "", "")
    kind = getattr(builtins, name.strip(), None)
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        near = nearest_name(name.strip(), _exception_names()) if name else None
        raise source.error(
            at,
            "raise: names no exception of Python's own",
            found=repr(name) if name else describe(text),
            help=f"did you mean {near!r}?" if near else 'such as {raise: "ValueError: no order"}',
        )
    try:
        return kind(message.removeprefix(" ")) if message else kind()
    except TypeError as error:
        raise source.error(
            at, f"{kind.__name__} cannot be made of a message", help="such as RuntimeError"
        ) from error


def _exception_names() -> list[str]:
    return [
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
