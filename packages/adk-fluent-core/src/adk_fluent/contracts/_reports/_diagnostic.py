"""A finding: what is wrong, where, and what to do; and the table of codes, which findings fill."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Location, Node


class Severity(IntEnum):
    """How bad a finding is; a worse one is greater."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Code:
    """A row of the table of codes.

    Attributes:
        code: Stable; never given to anything else again.
        name: Name of the finding's class.
        severity: Severity where a check does not say otherwise.
        explanation: What it means, in one line.
    """

    code: str
    name: str
    severity: Severity
    explanation: str


_codes: dict[str, Code] = {}
_owners: dict[str, str] = {}

#: Every code of this process: core's, and those of layers and users that are imported. By hundreds,
#: FLW is: 0 state, 1 structure, 2 streaming, 3 content, 4 boundaries, 5 remote agents, 6 cost,
#: 9 the check itself. Codes of anybody else have a prefix of their own.
CODES: Final[Mapping[str, Code]] = MappingProxyType(_codes)

_FORM: Final = re.compile(r"[A-Z]{2,8}[0-9]{3}")
#: What the codes of adk-fluent begin with.
OURS: Final = "FLW"


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding is about.

    Attributes:
        message: What is there.
        node: Name of the node there, if it is one.
        location: Its line in the source, if known.
    """

    message: str
    node: str | None = None
    location: Location | None = None

    @classmethod
    def at(cls, node: Node, message: str) -> Related:
        """The place where a node was written."""
        return cls(message, node.name, node.location)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"message": self.message, "node": self.node, "location": _place(self.location)}


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A finding: what is wrong at one node, and what to do.

    Every kind of finding is a subclass with a code, a severity and a docstring, whose first line is
    the explanation in `CODES`::

        class NoBudget(Diagnostic, code="ACME001", severity=Severity.WARNING):
            \"\"\"A model is chosen at run time and nothing bounds the cost.\"\"\"

        yield NoBudget.at(graph, node, "`pick` has no budget", help="add .budget(usd=1)")

    Attributes:
        message: What was found here, in one line.
        node: Name of the node it is about.
        kind: Type of that node, such as ``"AgentNode"``.
        path: The nodes above it, for readers who have no location.
        location: The builder call that made the node, if known.
        related: Other places it is about.
        help: What to do.
        severity: How bad it is here; None is the severity of its class.
        allowed: Whether somebody has said, there or above, that it is meant to be so.
    """

    #: Stands for this kind of finding, and never changes: ``FLW001``.
    code: ClassVar[str] = ""
    #: What this kind of finding means, in one line.
    title: ClassVar[str] = ""
    #: Whether a run may fail where this is found, so that nothing is proven.
    doubtful: ClassVar[bool] = False

    message: str
    node: str = ""
    kind: str = ""
    path: str = ""
    location: Location | None = None
    related: tuple[Related, ...] = ()
    help: str | None = None
    severity: Severity = None  # pyright: ignore[reportAssignmentType]  # __post_init__ fills it
    allowed: bool = False

    def __init_subclass__(cls, *, code: str, severity: Severity, doubtful: bool = False) -> None:
        _claim(cls, code)
        cls.code = code
        cls.doubtful = doubtful
        cls.title = (cls.__doc__ or cls.__name__).strip().splitlines()[0]
        _codes[code] = Code(code, cls.__name__, severity, cls.title)

    def __post_init__(self) -> None:
        if not self.code:
            raise TypeError(
                "Diagnostic is a base class: subclass it with code= and severity=, "
                "as its docstring shows"
            )
        if self.severity is None:  # pyright: ignore[reportUnnecessaryComparison]  # see the field
            object.__setattr__(self, "severity", _codes[self.code].severity)

    @classmethod
    def at(
        cls,
        graph: Graph,
        node: Node,
        message: str,
        *,
        help: str | None = None,
        related: Iterable[Related] = (),
        severity: Severity | None = None,
    ) -> Self:
        """A finding about a node, with its name, kind, path and location filled in."""
        return cls(
            message=message,
            node=node.name,
            kind=type(node).__name__,
            path=graph.path(node),
            location=node.location,
            related=tuple(related),
            help=help,
            severity=_codes[cls.code].severity if severity is None else severity,
            allowed=cls.code in graph.allowed(node),
        )

    def __str__(self) -> str:
        where = self.location or self.path or self.node
        return f"{self.severity}[{self.code}]: {self.message}" + (f" ({where})" if where else "")

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "code": self.code,
            "name": type(self).__name__,
            "severity": str(self.severity),
            "title": self.title,
            "message": self.message,
            "node": self.node,
            "kind": self.kind,
            "path": self.path,
            "location": _place(self.location),
            "related": [each.to_dict() for each in self.related],
            "help": self.help,
        }


def _place(location: Location | None) -> dict[str, Any] | None:
    return None if location is None else {"file": location.file, "line": location.line}


def _claim(cls: type[Diagnostic], code: str) -> None:
    """Refuse a code that has another owner; the same class defined again (a reload) is fine."""
    if _FORM.fullmatch(code) is None:
        raise TypeError(
            f"{cls.__name__}: code {code!r} is not a prefix and 3 digits, as in 'ACME001'"
        )
    if code.startswith(OURS) and not cls.__module__.startswith("adk_fluent."):
        raise TypeError(f"{cls.__name__}: codes {OURS}... are adk-fluent's; choose another prefix")
    me = f"{cls.__module__}.{cls.__qualname__}"
    owner = _owners.setdefault(code, me)
    if owner != me:
        raise TypeError(f"{cls.__name__}: code {code} belongs to {owner}")
