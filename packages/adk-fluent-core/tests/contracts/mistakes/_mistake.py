"""One mistake: a correct pipeline of the corpus in which one thing is wrong."""

from __future__ import annotations

import inspect
import linecache
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpus import CASES, Case

if TYPE_CHECKING:
    from pathlib import Path

_CASES: Final = {case.name: case for case in CASES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A pipeline with one mistake, and what must be said about it.

    Attributes:
        title: What is wrong.
        of: Name of the correct case.
        uses: Functions beside the pipeline's own that belong to the program, by their names.
        right: What the correct program says.
        wrong: What this one says instead, wherever that stands.
        finding: The kind of finding, by the name of its class.
        severity: How bad it is; None: as bad as its kind.
        at: The nodes it is found at, each with the state key that it is about.
        help: What its help names.
        silent: Whether the correct case, run with the mistake in it, fails nowhere: it ends in
            another way, works on nothing, or does not come by.
    """

    title: str
    of: str
    uses: tuple[str, ...] = ()
    right: str
    wrong: str
    finding: str
    severity: str | None = None
    at: tuple[tuple[str, str], ...]
    help: str
    silent: bool = False

    @property
    def case(self) -> Case:
        """The correct case."""
        return _CASES[self.of]

    @property
    def program(self) -> str:
        """The functions of the correct program, with the mistake in them.

        Raises:
            ValueError: They no longer hold what is to be made wrong.
        """
        names = _names(self.case)
        functions = [*(names[name] for name in self.uses), self.case.pipeline]
        text = "\n\n".join(inspect.getsource(fn) for fn in functions)
        if self.right not in text:
            raise ValueError(f"{self.of!r} no longer has {self.right!r}")
        return text.replace(self.right, self.wrong)

    def pipeline(self, folder: Path) -> Any:
        """The wrong pipeline, made by a file ``app.py`` in a folder."""
        file = folder / "app.py"
        file.write_text(self.program, "utf-8")
        linecache.checkcache(str(file))
        names: dict[str, Any] = {**_names(self.case), "__name__": "app", "__file__": str(file)}
        exec(compile(self.program, str(file), "exec"), names)
        return names[self.case.pipeline.__name__]()


def _names(case: Case) -> dict[str, Any]:
    """What the module of a case has, and whatever else mistakes are made of."""
    from . import _schemas

    module = sys.modules[case.pipeline.__module__]
    return {**vars(_schemas), **vars(module)}
