"""Docstrings as reStructuredText."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TYPE_CHECKING, Final

import griffe

from docs.entry import STEP
from docs.sources import docstring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.names import Names

_BACKTICKS: Final = re.compile(r"(?<![`:\\])`([^`]+)`(?!`)(?=(\w?))")


def body(thing: griffe.Object, owner: griffe.Class | None, names: Names) -> str:
    """The docstring of something, all but the attributes it lists.

    Args:
        thing: What it belongs to.
        owner: The class under which it is shown.
        names: What names stand for.
    """
    said = docstring(thing)
    if said is None:
        return ""
    parts = (_section(each, thing, owner, names) for each in said.parsed)
    return "\n\n".join(part for part in parts if part)


def summary(thing: griffe.Object, names: Names) -> str:
    """The first paragraph of a docstring."""
    said = docstring(thing)
    text = said.value.strip().partition("\n\n")[0] if said else ""
    return inline(text, thing, None, names)


def inline(text: str, thing: griffe.Object, owner: griffe.Class | None, names: Names) -> str:
    """Text with links; what is shown literally stays as it is."""

    def link(match: re.Match[str]) -> str:
        end = "\\ " if match[2] else ""  # `Agent`s: a link ends before a space only
        return names.link(" ".join(match[1].split()), thing, owner) + end

    return "\n".join(
        chunk if literal else _BACKTICKS.sub(link, chunk) for chunk, literal in _chunks(text)
    )


def _chunks(text: str) -> Iterator[tuple[str, bool]]:
    """Parts of a text, and whether each is shown as it is: examples, and what follows ``::``."""
    kept: list[str] = []
    was = until_dedent = False
    for line in text.splitlines():
        if until_dedent and line.strip() and not line.startswith(" "):
            until_dedent = False
        literal = until_dedent or line.lstrip().startswith((">>>", "..."))
        if literal != was and kept:
            yield "\n".join(kept), was
            kept = []
        was = literal
        kept.append(line)
        until_dedent = until_dedent or line.endswith("::")
    yield "\n".join(kept), was


def _section(
    section: griffe.DocstringSection,
    thing: griffe.Object,
    owner: griffe.Class | None,
    names: Names,
) -> str:
    def said(text: str) -> str:
        return inline(text, thing, owner, names)

    match section:
        case griffe.DocstringSectionText():
            return said(section.value)
        case griffe.DocstringSectionParameters() | griffe.DocstringSectionOtherParameters():
            rows = ((f"param {_escaped(each.name)}", each.description) for each in section.value)
        case griffe.DocstringSectionRaises():
            rows = (
                (f"raises {names.raised(str(each.annotation), thing, owner)}", each.description)
                for each in section.value
            )
        case griffe.DocstringSectionReturns():
            rows = (("returns", each.description) for each in section.value)
        case griffe.DocstringSectionYields():
            rows = (("yields", each.description) for each in section.value)
        case griffe.DocstringSectionAdmonition():
            return f".. rubric:: {section.title}\n\n{said(section.value.description)}"
        case griffe.DocstringSectionAttributes():
            return ""
        case _:
            names.problems.append(
                f"{thing.path}: a docstring section of kind {section.kind.value!r}"
            )
            return ""
    return "\n".join(f":{title}: {_hanging(said(text))}" for title, text in rows)


def _escaped(name: str) -> str:
    return name.replace("*", "\\*")


def _hanging(text: str) -> str:
    return indent(text, STEP).lstrip()
