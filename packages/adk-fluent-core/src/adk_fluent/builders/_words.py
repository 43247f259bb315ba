"""Words for error messages."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType

from adk_fluent.ir import Ref


def article(noun: str) -> str:
    """The indefinite article that fits."""
    return "an" if noun[:1].lower() in "aeiou" else "a"


def describe(value: object) -> str:
    """A value in an error message; never its contents, which may be secret."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
        return f"the function {Ref.to(value).name}"
    kind = type(value).__name__
    return f"{article(kind)} {kind}"
