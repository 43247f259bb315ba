"""One entry of the reference, as the directives of Sphinx's domain for Python have it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import indent
from typing import Final

STEP: Final = "   "
_LINE: Final = 80  # of a signature
_PATH: Final = re.compile(r"~[\w.]*\.")  # of a name in a signature; not shown
_PARTS_OF_CLASSES: Final = {"attribute", "method", "property"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that is described.

    Attributes:
        kind: What Sphinx calls it: ``class``, ``method``, ``data``.
        module: The module by which it is described.
        path: Its name within that, with the class it belongs to: ``Agent.tool``.
        heads: Its signatures.
        text: What is said of it.
        options: More that Sphinx is told; those that are empty are left out.
        flags: The same, of what has no value: ``async``.
    """

    kind: str
    module: str
    path: str
    heads: list[str]
    text: str
    options: dict[str, str] = field(default_factory=dict[str, str])
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As reStructuredText."""
        first = f".. py:{self.kind}:: "
        owner = self.path.rpartition(".")[0]
        heads = [f"{owner}.{head}" if owner else head for head in self.heads]
        flags = list(self.flags)
        if self.kind in _PARTS_OF_CLASSES:
            flags.append("no-contents-entry")
        if "(" in heads[0] and max(len(_PATH.sub("", head)) for head in heads) <= _LINE:
            flags.append("single-line-parameter-list")
        options = {"module": self.module, **self.options}
        rows = [f":{key}: {value}" for key, value in options.items() if value]
        rows += [f":{flag}:" for flag in flags]
        shown = ("\n" + " " * len(first)).join(heads)
        return f"{first}{shown}\n" + indent("\n".join([*rows, "", self.text]), STEP)


def title(text: str, line: str) -> str:
    """A heading."""
    return f"{text}\n{line * len(text)}"
