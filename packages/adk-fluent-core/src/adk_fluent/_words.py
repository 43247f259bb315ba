"""Words for error messages."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, GenericAlias, MethodType
from typing import Any

from adk_fluent.ir import Ref


def article(noun: str) -> str:
    """Return the indefinite article that a noun takes.

    Args:
        noun: The noun, or the words that begin with it.
    """
    return "an" if noun[:1].lower() in "aeiou" else "a"


def describe(value: Any) -> str:
    """Describe a value for an error message, without its contents, which may be secret.

    Args:
        value: Anything. Numbers, booleans and None are shown as they are.

    Returns:
        A noun phrase, such as ``a dict``, ``the class Invoice`` or ``the function score``.
    """
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


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: ``localhost``, or an address that leads back.

    Args:
        host: A name or an address, without a port.
    """
    import ipaddress  # noqa: PLC0415  # slow to import

    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def public_address(url: str) -> str:
    """Return an address without the parts that may be secret: user, password, query, fragment.

    Args:
        url: The address.
    """
    from urllib.parse import urlsplit  # noqa: PLC0415  # slow to import

    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    scheme = f"{parts.scheme}://" if host else f"{parts.scheme}:" if parts.scheme else ""
    path = parts.path if host else parts.path.rpartition("@")[2]
    return f"{scheme}{host}{path}"
