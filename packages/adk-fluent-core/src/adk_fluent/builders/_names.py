"""Names that users give."""

from __future__ import annotations

from adk_fluent._words import article, describe
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import why_reserved


def checked_name(name: object, kind: str) -> str:
    """The name itself, if it can name an agent.

    Raises:
        UsageError: It is no str.
        BuildError: It is no identifier, or ADK keeps it for itself.
    """
    if not isinstance(name, str):
        raise UsageError(
            f"the name of {article(kind)} {kind} is a str",
            found=describe(name),
            help=f'give it a name first: {kind}("my_name", ...)',
        )
    if not name.isidentifier():
        raise BuildError(
            f"{name!r} cannot name {article(kind)} {kind}",
            found="not an identifier",
            help=f"use letters, digits and underscores, such as {_as_identifier(name)!r}",
        )
    if why_reserved(name):
        raise BuildError(
            f"{name!r} cannot name {article(kind)} {kind}",
            found="a name that ADK and adk-fluent keep for themselves",
            help=f"choose another one, such as {'my_' + name.strip('_').lower()!r}",
        )
    return name


def _as_identifier(name: str) -> str:
    text = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    return text if text.isidentifier() else f"agent_{text}".rstrip("_")
