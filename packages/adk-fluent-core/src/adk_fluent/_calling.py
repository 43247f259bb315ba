"""What user functions over state are called with, and why one of them cannot be called so.

They get their values by position, and those resources that they name by name.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from adk_fluent.errors import UsageError, nearest_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from inspect import Parameter, Signature

    from adk_fluent.ir import Ref


class Misfit(NamedTuple):
    """Why a function cannot be called.

    Attributes:
        what: In one line.
        help: What to do.
    """

    what: str
    help: str


class Outcome(NamedTuple):
    """What a function with a stated meaning does to one key.

    Attributes:
        key: The key.
        sources: It gets a value if one of these has one; None: it always does.
        removes: It has none afterwards.
        value: The value, if it is known; None where it is not.
        copies: Keys whose value it may be.
        type: What the value is if it is none of these, as far as that is known.
    """

    key: str
    sources: tuple[str, ...] | None = None
    removes: bool = False
    value: object = None
    copies: tuple[str, ...] = ()
    type: type[Any] | None = None


class Stated:
    """What is called with state and says what it does to which key; it reads its keys leniently."""

    __slots__ = ()

    def outcomes(self) -> tuple[Outcome, ...]:
        """One for each key it writes; all happen at once."""
        raise NotImplementedError


class Calls:
    """What is called with state and calls functions inside, with the resources that these name.

    It shows whoever injects resources the parameters of the functions inside, as its own.
    """

    __slots__ = ()

    def functions(self) -> tuple[tuple[Ref, int], ...]:
        """The functions inside, each with the number of values that it is called with."""
        raise NotImplementedError

    def makes(self) -> tuple[tuple[str, Ref], ...]:
        """Keys whose value is what a function inside gives, with that function."""
        return ()

    if not TYPE_CHECKING:  # to a type checker it is the signature of the class, too

        @property
        def __signature__(self) -> Signature:
            from inspect import Parameter, Signature  # noqa: PLC0415  # expensive; see `record`

            names = dict.fromkeys(name for each in self.functions() for name in named(*each))
            resources = [Parameter(name, Parameter.KEYWORD_ONLY) for name in names]
            return Signature([Parameter("_state", Parameter.POSITIONAL_ONLY), *resources])


def named(fn: Ref, taken: int) -> list[str]:
    """The parameters of a function that can be given by name, but for those of its values."""
    from inspect import Parameter, signature  # noqa: PLC0415  # expensive; see `record`

    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    try:
        every = signature(fn.value).parameters.values()
    except (TypeError, ValueError):  # not every function of Python's own has one
        return []
    return [each.name for at, each in enumerate(every) if each.kind in kinds and at >= taken]


def call(
    fn: Ref, values: Sequence[Any], given: Mapping[str, Any], names: Iterable[str], skip: int = 0
) -> Any:
    """Call a function.

    Args:
        fn: The function.
        values: What it gets by position.
        given: The resources it gets.
        names: The resources there are.
        skip: How many of its first parameters get no resource.

    Raises:
        UsageError: It cannot be called so.
    """
    try:
        return fn.value(*values, **given)
    except TypeError as error:
        place = error.__traceback__
        if place is None or place.tb_next is not None:  # raised by what the function does
            raise
        found = misfit(fn, frozenset(names), len(values), skip)
        if found is None:
            raise
        raise UsageError(found.what, help=found.help) from None


def misfits(fn: Ref, names: frozenset[str]) -> list[Misfit]:
    """Why a function over state cannot be called; nothing where it can, or nobody can tell.

    Args:
        fn: The function.
        names: The resources there are.
    """
    inside = fn.value
    if isinstance(inside, Calls):
        every = [misfit(each, names, taken, taken) for each, taken in inside.functions()]
    else:
        every = [misfit(fn, names)]
    return [each for each in every if each is not None]


def misfit(fn: Ref, names: frozenset[str], values: int = 1, skip: int = 0) -> Misfit | None:
    """Why one function cannot be called; None where it can, or nobody can tell.

    Args:
        fn: The function.
        names: The resources there are.
        values: How many values it gets by position.
        skip: How many of its first parameters get no resource.
    """
    if _fits(fn.value, names, values, skip):
        return None
    every = _parameters(fn.value)
    return None if every is None else _why(fn.name, every, names, values, skip)


def _fits(function: object, names: frozenset[str], values: int, skip: int) -> bool:
    """Whether a function needs its values and nothing else: most do, and this is quick to see."""
    if type(function) is not FunctionType:
        return False
    code = function.__code__
    return (
        code.co_argcount - len(function.__defaults__ or ()) <= values <= code.co_argcount
        and len(function.__kwdefaults__ or ()) == code.co_kwonlyargcount
        and names.isdisjoint(code.co_varnames[skip:values])
    )


def _parameters(function: Any) -> Sequence[Parameter] | None:
    """The parameters that Python itself will insist on, if they are known for sure.

    What a wrapper says of what it wraps is not: it may fill a parameter itself.
    """
    from inspect import signature  # noqa: PLC0415  # slow to import, and most functions fit

    inner = (function, getattr(function, "func", None), type(function).__call__)
    if any(getattr(each, "__signature__", None) is not None for each in inner):
        return None
    try:
        found = signature(cast("Callable[..., Any]", function), follow_wrapped=False)
    except (TypeError, ValueError, NameError):  # NameError: an annotation for type checkers only
        return None
    return tuple(found.parameters.values())


def _why(
    name: str, every: Sequence[Parameter], names: frozenset[str], values: int, skip: int
) -> Misfit | None:
    kinds = {each.name: each.kind.name for each in every}
    by_position = [each for each in kinds if kinds[each].startswith("POSITIONAL")]
    if values > len(by_position) and "VAR_POSITIONAL" not in kinds.values():
        return _too_few(name, len(by_position), values)
    first = by_position[:values]
    for each in first[skip:]:
        if each in names and kinds[each] == "POSITIONAL_OR_KEYWORD":
            return Misfit(
                f"`{name}` takes `{each}` first, which gets state and the resource `{each}`",
                f"put a parameter for state before `{each}`",
            )
    needed = [
        each.name
        for each in every
        if each.default is each.empty
        and each.name not in first
        and not kinds[each.name].startswith("VAR_")
    ]
    for each in needed:
        if each in names and kinds[each] == "POSITIONAL_ONLY":
            return Misfit(
                f"`{name}` takes `{each}` by position only, and resources are given by name",
                f"put the `/` of its parameters before `{each}`",
            )
    missing = [each for each in needed if each not in names]
    return _unfilled(name, missing, names) if missing else None


def _too_few(name: str, takes: int, values: int) -> Misfit:
    count = f"{takes or 'no'} value{'' if takes < 2 else 's'}"
    return Misfit(
        f"`{name}` takes {count}, and is called with {values}",
        "give it a parameter for what it is called with, as in `lambda state: ...`"
        if values == 1
        else f"give it {values} parameters, one for each value",
    )


def _unfilled(name: str, missing: Sequence[str], names: frozenset[str]) -> Misfit:
    inject = f"add .inject({', '.join(f'{each}=...' for each in missing)}) to the pipeline"
    near = nearest_name(missing[0], names) if names else None
    if near is not None:
        help = f"did you mean the resource `{near}`? Otherwise {inject}"
    elif len(missing) == 1:
        help = f"{inject}, or give `{missing[0]}` a default"
    else:
        help = f"{inject}, or give them defaults"
    listed = " and ".join(
        each
        for each in (", ".join(f"`{each}`" for each in missing[:-1]), f"`{missing[-1]}`")
        if each
    )
    return Misfit(f"`{name}` needs {listed}, which no resource fills", help)
