"""Words for error messages."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, GenericAlias, MethodType
from typing import Any

from adk_fluent.ir import Ref


def article(noun: str) -> str:
    """The indefinite article that fits."""
    return "an" if noun[:1].lower() in "aeiou" else "a"


def describe(value: Any) -> str:
    """A value in an error message; never its contents, which may be secret."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, GenericAlias):
        return f"the type {value}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
        return f"the function {Ref.to(value).name}"
    if isinstance(value, str) and not value:
        return "an empty str"
    kind = type(value).__name__
    return f"{article(kind)} {kind}"


def public_address(url: str) -> str:
    """Where an address leads, without what could be a secret: user, password, query, fragment."""
    from urllib.parse import urlsplit  # noqa: PLC0415  # slow to import

    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    scheme = f"{parts.scheme}://" if host else f"{parts.scheme}:" if parts.scheme else ""
    path = parts.path if host else parts.path.rpartition("@")[2]
    return f"{scheme}{host}{path}"
