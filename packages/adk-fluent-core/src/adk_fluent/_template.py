"""Placeholders of instructions, by ADK's own rules.

ADK fills ``{key}`` from state and raises when the key is absent; ``{key?}`` is empty then.
``{artifact.name}`` is an artifact, and anything that is no valid key stays as it is. ADK 2.x leaves
``${key}`` and an escaped brace alone, which 1.x does not: such a key is not counted as read.
(Source: google.adk.utils.instructions_utils.)
"""

from __future__ import annotations

import re
from typing import Final

from adk_fluent.ir import StateFieldRef

_PLACEHOLDER: Final = r"(?<![\$\{\\]){+[^{}]*}+"  # compiled by the first template
_PREFIXES: Final = ("app:", "user:", "temp:")


def placeholders(text: str) -> tuple[StateFieldRef, ...]:
    """The state keys a template reads, in order; an optional one has ``""`` as its default."""
    found: dict[str, StateFieldRef] = {}
    for match in re.finditer(_PLACEHOLDER, text):
        name = match.group().lstrip("{").rstrip("}").strip()
        optional = name.endswith("?")
        key = name.removesuffix("?")
        if not _is_key(key):
            continue
        if not optional:
            found[key] = StateFieldRef(key)
        elif key not in found:
            found[key] = StateFieldRef(key, default="")
    return tuple(found.values())


def _is_key(name: str) -> bool:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix).isidentifier()
    return name.isidentifier()
